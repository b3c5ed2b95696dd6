//! Procedural macros of Tilewright.
