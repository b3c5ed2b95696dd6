//! Tilewright's code generator.
