"""What a staged graph is specialised on: guards, snapshots, and sizes and numbers that vary."""
