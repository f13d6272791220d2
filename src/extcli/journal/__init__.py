"""The journal of an emulator: reading, following, exporting and repeating its entries."""
