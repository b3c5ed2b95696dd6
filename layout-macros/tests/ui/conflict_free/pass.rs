use tilewright::typed::StaticLayout;
use tilewright::{ConflictFree, Swizzled, conflict_free};

#[derive(ConflictFree)]
#[conflict_free(tile = (64, 64), element = bf16)]
#[conflict_free(write = cp_async_16(threads = 128), read = ldmatrix_x4)]
pub struct A;

#[derive(ConflictFree)]
#[conflict_free(tile = (32, 64), element = f16)]
#[conflict_free(write = "cp.async.16 @ (32):(8)", read = "ldmatrix.x4.trans @ (16,2):(64,8)")]
struct B;

/// What is impossible, taken all the same.
#[derive(ConflictFree)]
#[conflict_free(tile = (64, 32), element = f32, family = swizzle, allow(wavefronts = 32))]
#[conflict_free(write = "st.128 @ (32):(4)", read = "ld.32 @ (32):(32)")]
struct Transposed;

fn main() {
    assert_eq!(A::LAYOUT.to_string(), "Sw<3,3,3> o (64,64):(64,1)");
    assert_eq!(A::WAVEFRONTS, &[("cp.async.16", 4), ("ldmatrix.x4", 4)]);
    assert!(A::CERTIFICATE.starts_with("conflict-free"));
    assert_eq!((A::ELEMENT_BYTES, B::ELEMENT_BYTES), (2, 2));
    // The type is a static layout: its index function unrolls.
    assert_eq!(A::at([5, 8]), A::LAYOUT.at(&[5, 8]));
    assert_eq!(B::SIZE, 32 * 64);
    assert_eq!(Transposed::RANK, 2);
    const C: Swizzled = conflict_free!(tile = (16, 64), element = 2, read = ldmatrix_x4);
    assert_eq!(C.size(), 16 * 64);
}
