//! What holds on every machine, with or without a GPU: an answer, never a panic.

use tilewright_gpu::{Gpu, GpuError, cublas, cublaslt, devices, driver_version};

#[test]
fn opening_a_gpu_answers_on_every_machine() {
    match Gpu::open(0) {
        Ok(gpu) => {
            assert!(!gpu.info().name.is_empty());
            assert!(gpu.info().arch().starts_with("sm_"));
        }
        Err(error) => {
            assert!(error.means_no_gpu(), "{error}");
            let sentence = error.to_string();
            assert!(
                !sentence.is_empty() && !sentence.contains('\n'),
                "{sentence}"
            );
        }
    }
}

#[test]
fn there_is_no_thousandth_gpu() {
    let error = Gpu::open(1000).expect_err("no machine has so many");
    assert!(error.means_no_gpu(), "{error}");
}

#[test]
fn every_entry_gives_the_same_reason() {
    let Err(reason) = driver_version() else {
        // A driver is here: then its version is what the devices say too, if there are any.
        let listed = devices().map(|devices| devices.len());
        assert!(
            matches!(listed, Ok(1..) | Err(GpuError::NoDevice)),
            "{listed:?}"
        );
        return;
    };
    assert_eq!(devices().expect_err("no driver"), reason);
    assert_eq!(cublas::find().expect_err("no driver"), reason);
    assert_eq!(cublaslt::find().expect_err("no driver"), reason);
}
