"""What every module may import: types, errors, settings, files, locks."""
