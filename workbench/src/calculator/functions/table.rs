//! The list of functions: the documentation, the suggestions and the messages about wrong arguments come from it.

/// Name, arguments and what it gives, for every function.
pub(crate) const FUNCTIONS: &[(&str, &str, &str)] = &[
    // Integer tuples
    (
        "rank",
        "rank(x)",
        "number of top-level modes of a layout or tuple",
    ),
    ("depth", "depth(x)", "deepest nesting: 0 for an integer"),
    (
        "size",
        "size(x)",
        "number of coordinates of a layout, product of a tuple",
    ),
    ("product", "product(t)", "product of a tuple"),
    (
        "product_each",
        "product_each(t)",
        "size of each top-level element",
    ),
    (
        "flatten",
        "flatten(x)",
        "the same without inner parentheses",
    ),
    (
        "get",
        "get(x, i, ...)",
        "top-level mode i, and mode ... of that",
    ),
    (
        "group",
        "group(x, b, e)",
        "modes b..e of a layout or tuple as one mode",
    ),
    ("take", "take(x, b, e)", "modes b..e alone"),
    (
        "select",
        "select(x, i, ...)",
        "the modes with these numbers, in this order",
    ),
    (
        "append",
        "append(x, y [, n])",
        "x with y as its last mode; with n, as often as makes n modes",
    ),
    (
        "prepend",
        "prepend(x, y [, n])",
        "x with y as its first mode; with n, as often as makes n modes",
    ),
    ("replace", "replace(x, i, y)", "x with y in place of mode i"),
    (
        "unflatten",
        "unflatten(x, profile)",
        "the modes of x with the parentheses of the profile",
    ),
    ("zip", "zip(x, y)", "pairs of modes: ((x0,y0),(x1,y1),...)"),
    (
        "reverse",
        "reverse(x)",
        "the modes from the last to the first",
    ),
    ("sum", "sum(t)", "sum of a tuple"),
    (
        "product_like",
        "product_like(t, guide)",
        "sizes of the parts of t that the guide's integers stand for",
    ),
    (
        "inner_product",
        "inner_product(a, b)",
        "sum of the products of congruent tuples",
    ),
    (
        "elem_scale",
        "elem_scale(a, b)",
        "each integer of a times the size of what b has there",
    ),
    (
        "round_up",
        "round_up(a, b)",
        "least multiples of b that are not below a",
    ),
    ("congruent", "congruent(a, b)", "same parentheses"),
    (
        "weakly_congruent",
        "weakly_congruent(a, b)",
        "b refines the parentheses of a",
    ),
    (
        "compatible",
        "compatible(a, b)",
        "coordinates of a are coordinates of b",
    ),
    (
        "evenly_divides",
        "evenly_divides(a, b)",
        "whether b, a tuple or a tiler, divides a",
    ),
    ("ceil_div", "ceil_div(a, b)", "how many tiles b cover a"),
    (
        "shape_div",
        "shape_div(a, b)",
        "a with b taken away, exactly",
    ),
    (
        "lex_less",
        "lex_less(a, b)",
        "first difference decides: a < b",
    ),
    ("lex_leq", "lex_leq(a, b)", "a <= b by the first difference"),
    ("lex_gtr", "lex_gtr(a, b)", "a > b by the first difference"),
    ("lex_geq", "lex_geq(a, b)", "a >= b by the first difference"),
    (
        "colex_less",
        "colex_less(a, b)",
        "last difference decides: a < b",
    ),
    (
        "colex_leq",
        "colex_leq(a, b)",
        "a <= b by the last difference",
    ),
    (
        "colex_gtr",
        "colex_gtr(a, b)",
        "a > b by the last difference",
    ),
    (
        "colex_geq",
        "colex_geq(a, b)",
        "a >= b by the last difference",
    ),
    (
        "elem_less",
        "elem_less(a, b)",
        "every element of a is below its partner",
    ),
    (
        "elem_leq",
        "elem_leq(a, b)",
        "every element of a is at most its partner",
    ),
    (
        "elem_gtr",
        "elem_gtr(a, b)",
        "every element of a is above its partner",
    ),
    (
        "elem_geq",
        "elem_geq(a, b)",
        "every element of a is at least its partner",
    ),
    (
        "slice",
        "slice(coord, x)",
        "what `_` in the coordinate leaves open",
    ),
    ("dice", "dice(coord, x)", "what the coordinate fixes"),
    ("min", "min(a, b, ...)", "least integer"),
    ("max", "max(a, b, ...)", "greatest integer"),
    ("gcd", "gcd(a, b, ...)", "greatest common divisor"),
    ("lcm", "lcm(a, b, ...)", "least common multiple"),
    ("abs", "abs(a)", "absolute value"),
    // Coordinates
    (
        "crd2idx",
        "crd2idx(coord, shape [, stride])",
        "offset (or linear coordinate) of a coordinate",
    ),
    (
        "idx2crd",
        "idx2crd(i, shape or layout)",
        "natural coordinate of a linear one",
    ),
    (
        "crd2crd",
        "crd2crd(coord, from, to)",
        "the coordinate of another shape at the same place",
    ),
    (
        "coordinates",
        "coordinates(shape)",
        "all coordinates in order, at most 64",
    ),
    // Construction
    (
        "make_layout",
        "make_layout(shape [, stride])",
        "compact layout, or shape:stride; of layouts: their tuple",
    ),
    (
        "col_major",
        "col_major(shape [, start])",
        "compact, first mode fastest; strides from start up",
    ),
    (
        "row_major",
        "row_major(shape [, start])",
        "compact, last mode fastest; strides from start up",
    ),
    (
        "make_ordered_layout",
        "make_ordered_layout(shape, order)",
        "compact in the order of the numbers",
    ),
    (
        "make_layout_like",
        "make_layout_like(L)",
        "compact with strides in the same order",
    ),
    (
        "make_identity_layout",
        "make_identity_layout(shape)",
        "offsets are coordinates",
    ),
    (
        "identity",
        "identity(shape)",
        "the same as make_identity_layout",
    ),
    // Layouts
    ("shape", "shape(L)", "the extents"),
    ("stride", "stride(L)", "the strides"),
    ("swizzle", "swizzle(L)", "the swizzle of a composed layout"),
    ("offset", "offset(L)", "the offset inside a composed layout"),
    ("inner", "inner(L)", "the layout inside a composed layout"),
    (
        "cosize",
        "cosize(L)",
        "elements of memory that the layout reaches",
    ),
    ("coshape", "coshape(L)", "cosize along each axis"),
    (
        "coalesce",
        "coalesce(L [, profile])",
        "same function, fewest modes",
    ),
    (
        "filter",
        "filter(L)",
        "without modes of stride 0 or extent 1, coalesced",
    ),
    (
        "filter_zeros",
        "filter_zeros(L)",
        "extent 1 where the stride is 0",
    ),
    (
        "composition",
        "composition(A, B or tiler)",
        "A after B; mode by mode for a tiler",
    ),
    (
        "composition_strict",
        "composition_strict(A, B)",
        "composition that refuses offsets outside A",
    ),
    (
        "complement",
        "complement(L [, n])",
        "what L leaves out of 0..n, of its cosize without n",
    ),
    (
        "complement_partial",
        "complement_partial(L [, n])",
        "copies of L that fit into 0..n, gaps left open, as in CuTe",
    ),
    (
        "right_inverse",
        "right_inverse(L)",
        "longest R with L(R(i)) = i",
    ),
    ("left_inverse", "left_inverse(L)", "X(L(i)) = i"),
    ("inverse", "inverse(L)", "both, of a bijection or a matrix"),
    ("preimage", "preimage(L, y)", "the i with L(i) = y"),
    (
        "nullspace",
        "nullspace(L)",
        "coordinates along which L stands still",
    ),
    (
        "max_common_layout",
        "max_common_layout(A, B)",
        "coordinates over which both count one by one",
    ),
    (
        "max_common_vector",
        "max_common_vector(A, B)",
        "elements of the largest vector that copies between both",
    ),
    (
        "max_alignment",
        "max_alignment(L)",
        "largest aligned vector that the offsets fall into, in order",
    ),
    (
        "domain_distribute",
        "domain_distribute(shape, n)",
        "n rising coordinates that divide the shape",
    ),
    (
        "domain_distribute_partial",
        "domain_distribute_partial(shape, n)",
        "fewer than n where n has a factor that the extents lack, as in CuTe",
    ),
    // Divides and products
    (
        "logical_divide",
        "logical_divide(L, tiler)",
        "((tile0,rest0),(tile1,rest1),...)",
    ),
    (
        "zipped_divide",
        "zipped_divide(L, tiler)",
        "((tile0,tile1,...),(rest0,rest1,...))",
    ),
    (
        "tiled_divide",
        "tiled_divide(L, tiler)",
        "((tile0,tile1,...),rest0,rest1,...)",
    ),
    (
        "flat_divide",
        "flat_divide(L, tiler)",
        "(tile0,tile1,...,rest0,rest1,...)",
    ),
    (
        "overhang",
        "overhang(L, tiler)",
        "elements that the tiles reach beyond L: 0 if they divide",
    ),
    (
        "logical_product",
        "logical_product(L, tiler)",
        "L repeated as the tiler says",
    ),
    (
        "zipped_product",
        "zipped_product(L, tiler)",
        "((block0,block1,...),(tiles0,tiles1,...))",
    ),
    (
        "tiled_product",
        "tiled_product(L, tiler)",
        "((block0,block1,...),tiles0,tiles1,...)",
    ),
    (
        "flat_product",
        "flat_product(L, tiler)",
        "(block0,block1,...,tiles0,tiles1,...)",
    ),
    (
        "blocked_product",
        "blocked_product(L, T)",
        "blocks side by side",
    ),
    ("raked_product", "raked_product(L, T)", "blocks interleaved"),
    (
        "tile_to_shape",
        "tile_to_shape(L, shape [, order])",
        "L repeated until it fills the shape",
    ),
    // Element width
    ("upcast", "upcast(L, n)", "in units of n elements"),
    ("downcast", "downcast(L, n)", "in parts of 1/n element"),
    (
        "recast",
        "recast(L, old_bits, new_bits)",
        "in elements of another width",
    ),
    // Swizzles and bits
    (
        "make_swizzle",
        "make_swizzle(b, m, s)",
        "Sw<b,m,s> from integers",
    ),
    (
        "matrix",
        "matrix(L)",
        "images of the index bits over F2, for powers of two",
    ),
    (
        "to_layout",
        "to_layout(matrix)",
        "the layout with that bit matrix",
    ),
    // Partition
    (
        "local_tile",
        "local_tile(L, tiler, coord)",
        "the tile at a coordinate: what a block has",
    ),
    (
        "local_partition",
        "local_partition(L, threads, i)",
        "one element of each tile: what thread i has",
    ),
    (
        "thread_partition",
        "thread_partition(L, tile, tv, i)",
        "the values of thread i by a thread-value layout",
    ),
    (
        "atom_a",
        "atom_a(ATOM)",
        "(thread, value) of A of a matrix instruction",
    ),
    (
        "atom_b",
        "atom_b(ATOM)",
        "(thread, value) of B of a matrix instruction",
    ),
    (
        "atom_c",
        "atom_c(ATOM)",
        "(thread, value) of C and D of a matrix instruction; of tcgen05.mma, atom_tmem",
    ),
    (
        "atom_meta",
        "atom_meta(ATOM)",
        "(provider, field) of the metadata of a sparse instruction",
    ),
    (
        "atom_src",
        "atom_src(ATOM)",
        "(thread, value) of a copy instruction's source",
    ),
    (
        "atom_dst",
        "atom_dst(ATOM)",
        "(thread, value) of a copy instruction's destination",
    ),
    (
        "atom_tmem",
        "atom_tmem(ATOM)",
        "(m, n), or (thread, register) of tcgen05.ld, to lane + 128*column + 65536*block of tensor memory",
    ),
    (
        "layout_tv_a",
        "layout_tv_a(ATOM, atoms)",
        "(thread, value) of A of a TiledMma",
    ),
    (
        "layout_tv_b",
        "layout_tv_b(ATOM, atoms)",
        "(thread, value) of B of a TiledMma",
    ),
    (
        "layout_tv_c",
        "layout_tv_c(ATOM, atoms)",
        "(thread, value) of C of a TiledMma",
    ),
    (
        "thrfrg_a",
        "thrfrg_a(ATOM, atoms, L)",
        "tensor A by thread and fragment",
    ),
    (
        "thrfrg_b",
        "thrfrg_b(ATOM, atoms, L)",
        "tensor B by thread and fragment",
    ),
    (
        "thrfrg_c",
        "thrfrg_c(ATOM, atoms, L)",
        "tensor C by thread and fragment",
    ),
    (
        "partition_a",
        "partition_a(ATOM, atoms, L, i)",
        "the fragment of A of thread i",
    ),
    (
        "partition_b",
        "partition_b(ATOM, atoms, L, i)",
        "the fragment of B of thread i",
    ),
    (
        "partition_c",
        "partition_c(ATOM, atoms, L, i)",
        "the fragment of C of thread i",
    ),
    (
        "layout_tv",
        "layout_tv(ATOM, threads, values)",
        "(thread, value) of a TiledCopy",
    ),
    (
        "partition_s",
        "partition_s(ATOM, threads, values, L, i)",
        "what thread i reads of the source",
    ),
    (
        "partition_d",
        "partition_d(ATOM, threads, values, L, i)",
        "what thread i writes of the destination",
    ),
    (
        "retile",
        "retile(ATOM, threads, values, L)",
        "a fragment in the order of a copy's values",
    ),
    (
        "wavefronts",
        "wavefronts(OP, L [, A, n])",
        "shared-memory wavefronts of an access; L maps the lane to a byte; with A and n, L is a tile, A maps the lane to the row-major number of its element of n bytes",
    ),
    // Devices
    (
        "distribution",
        "distribution(L [, (m,n)])",
        "which device holds which element of an m by n matrix; L maps (device, local) to (row, column); without extents, all that L covers",
    ),
    (
        "row_shards",
        "row_shards((m,n), p)",
        "blocks of rows on p devices",
    ),
    (
        "column_shards",
        "column_shards((m,n), p)",
        "blocks of columns on p devices",
    ),
    (
        "grid_shards",
        "grid_shards((m,n), (r,c))",
        "blocks on a grid of r by c devices",
    ),
    (
        "replicas",
        "replicas((m,n), p)",
        "the whole matrix on p devices",
    ),
    (
        "terms",
        "terms((m,n), p)",
        "a term of a sum of the whole matrix on p devices",
    ),
    (
        "summed",
        "summed(D)",
        "the same, with terms of a sum in place of copies",
    ),
    (
        "shards",
        "shards(D [, (m,n)])",
        "the rows and columns of each device",
    ),
    (
        "holders",
        "holders(D, (row,column) [, (m,n)])",
        "the devices that hold an element",
    ),
    (
        "redistribute",
        "redistribute(FROM, TO [, (m,n)] [, bytes])",
        "what moves between devices, its kind and what links carry; of elements of so many bytes",
    ),
    // Properties
    (
        "equal",
        "equal(a, b)",
        "the same function (layouts), the same value (others)",
    ),
    ("same", "same(a, b)", "written the same"),
    ("is_injective", "is_injective(L)", "no offset twice"),
    (
        "is_surjective_onto",
        "is_surjective_onto(L, n)",
        "the offsets are exactly 0..n",
    ),
    (
        "is_bijective",
        "is_bijective(L)",
        "the offsets are exactly 0..size, each once",
    ),
    (
        "is_compact",
        "is_compact(L)",
        "no gap between the offsets, each once",
    ),
];
