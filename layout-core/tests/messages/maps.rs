//! What matrices, spaces, bank models, proofs and derivations refuse.

use layout_core::banks::r700::{owned_dwords, write_map, write_place};
use layout_core::banks::{AMD_GCN, Access, LANES, NVIDIA, wavefronts};
use layout_core::derive::{Family, Pattern, Tile, derive};
use layout_core::f2::LinearMap;
use layout_core::proof::{
    Obligation, Region, aligned, bijective, carry_free, covers_exactly_once, disjoint, injective,
    multiple_of, prove_access,
};
use layout_core::space::{Byte, Coord, F16, F32, Map, UnitSwizzle};

use crate::table::{Table, cases, chain, l, s};

pub(crate) fn refusals(table: &mut Table) {
    matrices(table);
    spaces(table);
    banks(table);
    proofs(table);
    derivations(table);
}

fn matrices(table: &mut Table) {
    let identity = |bits| LinearMap::identity(bits).unwrap();
    let reversed: Vec<u64> = (0..40).map(|j| 1 << (39 - j)).collect();
    let reversed = LinearMap::from_columns(&reversed, 40).unwrap();
    let zero = |bits| LinearMap::zero(bits, 1).unwrap();
    cases! { table;
        LinearMap::zero(65, 1) =>
            "too_many_bits", "65 bits are more than the 64 a linear map holds";
        LinearMap::from_columns(&[0; 65], 1) =>
            "too_many_bits", "65 bits are more than the 64 a linear map holds";
        LinearMap::from_columns(&[1, 31], 4) =>
            "column_too_large", "column 1 is 0x1f, which does not fit in 4 rows; add rows or clear its high bits";
        LinearMap::from_columns(&[2], 1) =>
            "column_too_large", "column 0 is 0x2, which does not fit in 1 row; add rows or clear its high bits";
        LinearMap::swizzle(2, 0, 0, 8) =>
            "swizzle_does_not_fit", "Swizzle<2,0,0> is not injective: S must not be 0";
        LinearMap::swizzle(3, 3, 3, 8) =>
            "swizzle_does_not_fit", "Swizzle<3,3,3> needs 9 bits and the map has 8";
        identity(3).compose(&identity(4)) =>
            "dimension_mismatch", "the left matrix has 3 columns and the right matrix has 4 rows; a product needs as many columns as rows";
        identity(3).xor(&identity(4)) =>
            "dimension_mismatch", "the left matrix is 3x3 and the right matrix is 4x4; a sum needs equal dimensions";
        identity(40).direct_sum(&identity(40)) =>
            "too_many_bits", "80 bits are more than the 64 a linear map holds";
        zero(2).inverse() =>
            "singular", "no inverse: a 1x2 matrix of rank 0 is not a bijection; use a square matrix of full rank";
        l("(3,2):(1,3)").matrix() =>
            "extent_not_power_of_two", "the extent 3 of mode 0 is not a power of two, so its index has no bits to map";
        l("4:-1").matrix() =>
            "negative_offset", "the stride -1 is negative and has no bit vector; use strides of at least 0";
        l("(4,2):(1,3)").matrix() =>
            "not_linear", "index 5 goes to 4, which is not the xor of its bits' images: the modes carry into each other";
        s("1 o 4:2").matrix() =>
            "not_linear", "index 0 goes to 1, but a linear map sends 0 to 0; leave out the offset";
        chain("Sw<1,0,1> o 1").matrix() =>
            "no_shape", "a function on all integers has no matrix; compose it with a layout first";
        chain("Sw<1,0,1> o 1 o Sw<1,0,1> o 4:1").matrix() =>
            "not_linear", "index 0 goes to 1, but a linear map sends 0 to 0; leave out the offset";
        reversed.to_layout() =>
            "too_many_modes", "the 40 index bits of the map need more than 32 modes as a layout; keep it as a map";
        zero(64).to_layout() =>
            "layout_too_large", "a layout of 64 index bits has a size or offsets beyond 64 bits; use at most 62 index bits";
        LinearMap::from_columns(&[1, 1], 1).unwrap().to_layout() =>
            "not_a_swizzled_layout", "column 1 (0x1) fits no Swizzle<B,M,S> of a layout with power-of-two strides; keep it as a map";
        zero(63).to_layout() =>
            "layout_too_large", "a layout of 63 index bits has a size or offsets beyond 64 bits; use at most 62 index bits";
    }
}

fn spaces(table: &mut Table) {
    let bytes = |text: &str| Map::<Coord, Byte>::new(s(text));
    let swizzle = UnitSwizzle::<Byte>::new(3, 0, 3).unwrap();
    cases! { table;
        UnitSwizzle::<Byte>::new(1, 0, 0).map(|_| ()) =>
            "invalid_swizzle", "Sw<1,0,0> is not injective: S must not be 0";
        swizzle.to_elements::<F16>().map(|_| ()) =>
            "swizzle_unit", "bytes to elements by 2: Sw<3,0,3> has no exact form in that unit; use a power of two that leaves the swizzle's bits whole";
        bytes("4:3").to_elements::<F16>() =>
            "not_divisible", "bytes to elements: 2 does not divide 3, the stride of mode 0; use a multiple of 2";
        bytes("2 o 4:4").to_elements::<F32>() =>
            "not_divisible", "bytes to elements: 4 does not divide the offset 2; use a multiple of 4";
        bytes("Sw<2,0,3> o 5 o 64:1").compose(&Map::<Coord, Coord>::new(s("Sw<3,0,3> o 3 o 50:1"))) =>
            "several_steps", "the composition takes several steps and is not one swizzled layout; use Function::compose, which keeps them";
    }
}

fn banks(table: &mut Table) {
    let addresses = |first: i64| {
        let mut all = [-1; LANES];
        all[0] = first;
        all
    };
    cases! { table;
        "ld.256".parse::<Access>() =>
            "unknown_access", "unknown access; known are ld.8, ld.16, ld.32, ld.64, ld.128, st.8, st.16, st.32, st.64, st.128, cp.async.4, cp.async.8, cp.async.16, ldmatrix.x1, ldmatrix.x2, ldmatrix.x4, ldmatrix.x1.trans, ldmatrix.x2.trans, ldmatrix.x4.trans, stmatrix.x1, stmatrix.x2, stmatrix.x4, stmatrix.x1.trans, stmatrix.x2.trans, stmatrix.x4.trans, ffma";
        wavefronts(&AMD_GCN, Access::CpAsync16, &addresses(0)) =>
            "unsupported_access", "the amd-gcn model has no cp.async.16 access";
        wavefronts(&NVIDIA, Access::Ld128, &addresses(8)) =>
            "misaligned", "lane 0 asks for byte 8, which is not a multiple of the access width 16";
        wavefronts(&NVIDIA, Access::Ld32, &addresses(-4)) =>
            "negative_address", "lane 0 has address -4: addresses start at 0, and -1 means inactive";
        owned_dwords(0) =>
            "group", "a group of 0 threads; groups have 1 to 1024";
        write_map(64, 6) =>
            "stride", "dst_stride is 6; strides are multiples of 4 dwords from 4 to 64";
        write_map(1024, 8) =>
            "beyond_owned", "dst_stride is 8; a thread of a group of 1024 owns 4 dwords, so use at most 4";
        write_place(64, 8, 8, 0) =>
            "index", "dst_index is 8; indices are multiples of 4 dwords from 0, below the stride of 8";
        write_place(64, 8, 4, 64) =>
            "thread", "thread 64 is not in a group of 64; use 0 to 63";
    }
}

fn proofs(table: &mut Table) {
    let column = Obligation::Wavefronts {
        access: Access::Ld32,
        map: s("32:128"),
        claimed: 1,
    };
    let region = Region::new;
    cases! { table;
        column.discharge() =>
            "too_many_wavefronts", "ld.32 takes 32 wavefronts, not 1: lanes 0 and 1 of phase 0 need different words of bank 0 (at coordinate 0 of the other modes)";
        prove_access(Access::Ld32, &s("16:4")) =>
            "lane_mode", "the first mode must be the 32 lanes of ld.32; it has extent 16";
        prove_access(Access::Ld128, &s("32:8")) =>
            "misaligned", "lane 1 asks for byte 8, which is not a multiple of the access width 16";
        prove_access(Access::Ld32, &s("32:-4")) =>
            "negative_offset", "index 1 goes to offset -4, below 0";
        prove_access(Access::Ld32, &s("Sw<1,30,1> o (32,2097152):(4,132)")) =>
            "too_many_cases", "2097152 cases are more than the 1048576 that are enumerated; use power-of-two strides";
        bijective(&s("(2,2):(1,1)")) =>
            "collision", "indices 1 and 2 both go to offset 1";
        bijective(&s("4:2")) =>
            "out_of_range", "index 2 goes to offset 4, outside 0..4";
        bijective(&s("(2,262144):(1,3)")) =>
            "too_many_cases", "524288 cases are more than the 131072 that are enumerated; use power-of-two strides";
        injective(&s("4:-1")) =>
            "negative_offset", "index 1 goes to offset -1, below 0";
        injective(&s("(2,2):(1,1)")) =>
            "collision", "indices 1 and 2 both go to offset 1";
        covers_exactly_once(32, &l("(4,8):(1,4)").take(0, 1).unwrap()) =>
            "size_mismatch", "4 (thread, value) pairs for a tile of 32 elements";
        disjoint(region(0, 2048), region(1024, 512)) =>
            "overlap", "both regions hold byte 1024";
        multiple_of(6, 4) =>
            "not_multiple", "6 is not a multiple of 4";
        aligned(Access::Ld128, &s("4:8")) =>
            "not_multiple", "8 is not a multiple of 16";
        aligned(Access::Ld128, &s("8 o 4:16")) =>
            "not_multiple", "8 is not a multiple of 16";
        aligned(Access::Ld128, &s("Sw<1,0,4> o 4:16")) =>
            "not_multiple", "17 is not a multiple of 16";
        aligned(Access::Ld128, &s("Sw<1,0,40> o 262144:16")) =>
            "too_many_cases", "262144 cases are more than the 131072 that are enumerated; use power-of-two strides";
        carry_free(-1, &l("4:1")) =>
            "negative_offset", "the base -1 is below 0";
        carry_free(0, &l("(4,4):(4,-1)")) =>
            "negative_offset", "mode 1 has the negative stride -1; reverse that mode first";
        carry_free(64, &l("(4,4):(1,64)")) =>
            "carry", "mode 1 and an earlier part both reach offset bit 6, so they carry into each other";
        carry_free(0, &l("(4,4):(1,2)")) =>
            "carry", "mode 1 and an earlier part both reach offset bit 1, so they carry into each other";
    }
}

fn derivations(table: &mut Table) {
    let tile = Tile::new(32, 32, 4);
    let pattern = |access, text: &str| Pattern::new(access, &s(text)).unwrap();
    let row = pattern(Access::Ld32, "32:1");
    let of = |tile, pattern| derive(tile, &[pattern], Family::Any);
    let idle = Pattern {
        access: Access::Ld32,
        elements: [-1; LANES],
    };
    cases! { table;
        derive(Tile::new(0, 32, 4), &[row], Family::Any) =>
            "bad_tile", "a tile of 0x32 elements; extents are 1 to 4096";
        derive(Tile::new(32, 32, 17), &[row], Family::Any) =>
            "bad_element", "an element of 17 bytes; widths are 1 to 16 bytes";
        derive(tile, &[], Family::Any) =>
            "bad_pattern_count", "0 accesses; give 1 to 16";
        derive(tile, &[row; 17], Family::Any) =>
            "bad_pattern_count", "17 accesses; give 1 to 16";
        of(tile, pattern(Access::Ffma, "3:1")) =>
            "unsupported_access", "access 0: ffma does not access shared memory; use a load, a store, cp.async, ldmatrix or stmatrix";
        of(Tile::new(32, 30, 4), pattern(Access::Ld128, "8:4")) =>
            "tile_not_divisible", "access 0: ld.128 moves 16 bytes a lane, which do not divide a row of 120 bytes; widen the row or narrow the access";
        of(tile, pattern(Access::Ld32, "32:64")) =>
            "outside_tile", "access 0: lane 16 touches element 1024, outside the tile's 1024 elements";
        of(tile, pattern(Access::Ld128, "8:2")) =>
            "misaligned", "access 0: lane 1 starts at element 2, but ld.128 must start at a multiple of 4";
        of(tile, pattern(Access::St32, "32:0")) =>
            "duplicate_lanes", "access 0: lanes 0 and 1 both write element 0 by st.32, which is a race";
        of(tile, idle) =>
            "no_active_lane", "access 0: no lane is active; give at least one lane an element";
        of(Tile::new(32, 32, 3), pattern(Access::Ld16, "2:2")) =>
            "narrow_on_odd_element", "access 0: ld.16 is narrower than a 4-byte word and elements of 3 bytes straddle words, so that no count holds for every translation; use an access of at least 4 bytes";
        Pattern::new(Access::Ld32, &s("64:1")) =>
            "wrong_lane_count", "access 0: the layout gives ld.32 64 lanes; a warp has 32";
        Pattern::new("ldmatrix.x4".parse().unwrap(), &s("16:32")) =>
            "wrong_lane_count", "access 0: ldmatrix.x4 needs the addresses of 32 lanes; the layout gives 16";
        Pattern::new(Access::Ld32, &s("4:-1")) =>
            "outside_tile", "access 0: lane 1 touches element -1; the elements of the tile are numbered from 0";
        derive(Tile::new(30, 30, 4), &[pattern(Access::Ld32, "30:1")], Family::F2) =>
            "family_does_not_apply", "the f2 family needs a power of two of columns, and power-of-two factors of at least 128 bytes together";
        derive(Tile::new(30, 30, 4), &[pattern(Access::Ld32, "30:1")], Family::Tma) =>
            "family_does_not_apply", "the tma family needs elements of 1, 2, 4, 8 or 16 bytes, rows of a multiple of 16 bytes, and a number of rows that boxes of equally many rows cover, at most 256 each and multiples of 8 under a swizzle";
    }
}
