"""The lowest layer, which every module may import: types, errors, settings, files, locks."""
