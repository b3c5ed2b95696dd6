//! A PTX emulator.
