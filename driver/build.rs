//! Gives the library the name under which programs ask for the driver, and keeps it loaded.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
        // It has registered what runs at exit.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
