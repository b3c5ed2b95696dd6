use tilewright::{Affine, IntTuple, Layout, Swizzle, Swizzled, SwizzledAffine, layout, shape};

const TILE: Layout = layout!((4,(2,2)):(2,(1,8)));
const NEGATIVE: Layout = layout!((_4, 0x10,):(-2, 8,));
const SWIZZLED: Swizzled = layout!(Sw<3,4,-3> o -16 o (8,64):(64,1));
const COMPOSED: Layout = layout!((8,8):(8,1) o (8,4):(8,2) o (4,2):(1,16));
const OF_CONSTANTS: Swizzled = layout!(SWIZZLE o 16 o {TILE} o (2,2):(1,4));
const SWIZZLE: Swizzle = tilewright::expect(Swizzle::new(1, 0, 2));
const NAMED: Affine = layout!((8,64):(2*ld+1,1) o (4,2):(2,8));
const DOWN: Affine = layout!((8,4):(1-ld,-3*ld-2));
const NAMED_TILE: SwizzledAffine = layout!(Sw<3,4,3> o (8,64):(ld,1));
const UNDONE: Swizzled = layout!(Sw<2,0,2> o Sw<2,0,2> o 16:1);
const MOVED_TWICE: Swizzled = layout!(16 o 3 o 8:1);
const SHIFTED: Swizzled = layout!(8:2 o Sw<2,0,2> o 16:1);
const SHAPE: IntTuple = shape!((4,(2,2)));

fn main() {
    assert_eq!(TILE.to_string(), "(4,(2,2)):(2,(1,8))");
    assert_eq!(NEGATIVE.to_string(), "(4,16):(-2,8)");
    assert_eq!(SWIZZLED.to_string(), "Sw<3,4,-3> o -16 o (8,64):(64,1)");
    assert_eq!(COMPOSED.index(5), layout!((8,8):(8,1)).index(layout!((8,4):(8,2)).index(17)));
    for i in 0..4 {
        let inside = layout!((2,2):(1,4)).index(i);
        assert_eq!(OF_CONSTANTS.index(i), SWIZZLE.apply(16 + TILE.index(inside)));
    }
    assert_eq!(NAMED.to_string(), "(4,2):(4*ld+2,1)");
    assert_eq!(DOWN.bind(&[5]).unwrap().to_string(), "(8,4):(-4,-17)");
    assert_eq!(NAMED_TILE.bind(&[64]).unwrap(), layout!(Sw<3,4,3> o (8,64):(64,1)));
    assert_eq!(UNDONE.to_string(), "16:1");
    assert_eq!(MOVED_TWICE.to_string(), "19 o 8:1");
    assert_eq!(SHIFTED.to_string(), "Sw<2,1,2> o 16:2");
    assert_eq!(SHAPE.leaves(), 3);
    // In a function, of whatever type the compiler finds.
    let tile = layout!(8:1);
    assert_eq!(tile.size(), 8);
}
