//! Errors by the hundred: whatever is provoked is one message in plain words, with a documented exit code, on standard error and as JSON, and
//! repeats no value at length. In a case `…` stands for 300 digits.

mod common;

use std::path::Path;

use common::{one_json, tilewright_in, words};

/// A command line, its exit code, and what the message says.
type Case = (&'static str, i32, &'static str);

/// A kernel of a pointer and a number.
const KERNEL: &str = ".version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 n){
.reg .u64 %rd<3>; .reg .u32 %r<3>;
ld.param.u64 %rd1,[p]; ld.param.u32 %r1,[n];
st.global.u32 [%rd1],%r1;
ret;
}
";

/// The longest word that is repeated: a line of the user's is cut at 160 letters, with a mark at each end.
const LONGEST_WORD: usize = 162;

fn holds(folder: &Path, (line, code, phrase): &Case) {
    let digits = "9".repeat(300);
    let words = words(&line.replace('…', &digits));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let output = tilewright_in(folder, &words);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(*code), "{words:?}: {text}");
    assert!(text.starts_with("error: "), "{words:?}: {text}");
    assert!(text.contains(phrase), "{words:?}: {text}");
    let longest = text.split_whitespace().map(|word| word.chars().count());
    assert!(longest.max() <= Some(LONGEST_WORD), "{words:?}: {text}");

    let words = [&words[..], &["--json"]].concat();
    let (json_code, value) = one_json(tilewright_in(folder, &words), &words);
    assert_eq!(json_code, *code, "{words:?}: {value}");
    assert!(value["error"]["code"].is_string(), "{words:?}: {value}");
    let message = value["error"]["message"].as_str().unwrap_or_default();
    assert!(
        !message.is_empty() && !message.contains('\n'),
        "{words:?}: {value}"
    );
}

fn all(cases: &[Case]) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("src")).expect("made");
    std::fs::write(folder.path().join("src/main.rs"), "").expect("written");
    std::fs::write(folder.path().join("k.ptx"), KERNEL).expect("written");
    for case in cases {
        holds(folder.path(), case);
    }
    // What is refused writes nothing.
    let files = std::fs::read_dir(folder.path()).expect("a folder");
    assert_eq!(files.count(), 2);
}

#[test]
fn expressions_are_refused_in_plain_words() {
    all(&[
        ("eval ''", 2, "expected a value"),
        ("eval '   '", 2, "expected a value"),
        ("eval '('", 2, "expected a value"),
        ("eval '()'", 1, "at least one element"),
        ("eval '(4,8'", 2, "expected ',' or ')'"),
        ("eval '(4,8):(8,1,2)'", 1, "same nesting"),
        ("eval 0:1", 1, "extents are at least 1"),
        ("eval -4:1", 1, "extents are at least 1"),
        ("eval …", 2, "does not fit in 64 bits"),
        ("eval 1:…", 2, "does not fit in 64 bits"),
        ("eval x…", 1, "is unknown"),
        (
            "eval 'foo(4:1)'",
            1,
            "there is no function 'foo'; there are coalesce",
        ),
        (
            "eval 'coalese(4:1)'",
            1,
            "there is no function 'coalese'; did you mean 'coalesce'?",
        ),
        ("eval foo", 1, "bind it with let foo"),
        ("eval ldmatrix.x4", 1, "an argument of a function"),
        (
            "eval 'coalesce()'",
            1,
            "coalesce got 0 arguments: call coalesce(L",
        ),
        (
            "eval 'composition(4:1)'",
            1,
            "composition got 1 argument: call",
        ),
        ("eval 'logical_divide(16:1,0)'", 1, "use at least 1"),
        ("eval 'Sw<3,3,0> o 64:1'", 1, "S must not be 0"),
        ("eval 'Sw<70,3,3> o 64:1'", 1, "at most 62"),
        ("eval 1/0", 1, "division by zero"),
        ("eval 9223372036854775807+1", 1, "does not fit in 64 bits"),
        ("eval ü:1", 2, "unexpected character 'ü'"),
        (
            "eval 4:1 --notation nope",
            2,
            "there is no notation `nope`; known are tilewright",
        ),
        (
            "eval 'Sw<3,3,3> o 512:1' --notation triton",
            1,
            "the layout has 1 mode; give it",
        ),
        ("eval", 2, "<EXPRESSION>"),
        ("eval 4:1 5:1", 2, "unexpected argument '5:1'"),
        (
            "eval 'wavefronts(xx,1,2,3)'",
            1,
            "there is no access `xx`; known are ld.8",
        ),
    ]);
}

#[test]
fn accesses_are_refused_in_plain_words() {
    all(&[
        (
            "derive --tile 64 --elem f16 --access 'ld.32 @ 32:2'",
            2,
            "ROWSxCOLUMNS",
        ),
        (
            "derive --tile '' --elem f16 --access 'ld.32 @ 32:2'",
            2,
            "ROWSxCOLUMNS",
        ),
        (
            "derive --tile …x4 --elem f16 --access 'ld.32 @ 32:2'",
            2,
            "is too large",
        ),
        (
            "derive --tile 0x64 --elem f16 --access 'ld.32 @ 32:2'",
            1,
            "extents are 1 to 4096",
        ),
        (
            "derive --tile 64x64 --elem f17 --access 'ld.32 @ 32:2'",
            2,
            "an element type such as f16",
        ),
        (
            "derive --tile 64x64 --elem -2 --access 'ld.32 @ 32:2'",
            2,
            "an element type such as f16",
        ),
        (
            "derive --tile 64x64 --elem f16 --access ld.32",
            2,
            "'OP @ LAYOUT'",
        ),
        (
            "derive --tile 64x64 --elem f16 --access 'ld.33 @ 32:2'",
            2,
            "there is no access `ld.33`; did you mean ld.32? Known are ld.8",
        ),
        (
            "derive --tile 64x64 --elem f16 --access 'LD.32 @ 32:2'",
            2,
            "did you mean ld.32?",
        ),
        (
            "derive --tile 64x64 --elem f16 --access 'wgmma @ 32:2'",
            2,
            "there is no access `wgmma`; known are",
        ),
        (
            "derive --tile 64x64 --elem f16 --access 'ld.32 @ 64:1'",
            1,
            "a warp has 32",
        ),
        (
            "derive --tile 64x64 --elem f16 --access 'ld.32 @ 32:100000'",
            1,
            "outside the tile's 4096 elements",
        ),
        (
            "derive --tile 64x64 --elem f16 --access 'ld.32 @ …'",
            2,
            "does not fit in 64 bits",
        ),
        (
            "derive --tile 64x64 --elem f16 --access 'ld.32 @ 32:2' --family nope",
            2,
            "there is no family `nope`; known are plain, swizzle",
        ),
        ("derive --tile 64x64 --elem f16", 2, "--access"),
        ("banks", 2, "--csv <FILE>"),
        ("banks --csv nope.csv", 1, "nope.csv: "),
        ("banks --csv src", 1, "src: "),
        (
            "banks --layout 5 --access 'ld.32 @ 32:32'",
            2,
            "the layout has 1 mode, and a tile has two",
        ),
        (
            "banks --layout 32:1 --access 'ld.32 @ 32:1'",
            2,
            "the layout has 1 mode, and a tile has two",
        ),
        (
            "banks --layout '(2,2,2):(1,2,4)' --access 'ld.32 @ 32:1'",
            2,
            "the layout has 3 modes, and a tile has two",
        ),
        (
            "banks --tile 32x32 --access 'ld.32 @ 32:99'",
            1,
            "lane 11 touches element 1089, outside the tile's 1024 elements",
        ),
        (
            "banks --tile 4294967296x4294967296 --access 'ld.32 @ 32:-1'",
            2,
            "fewer than 2^63 in all",
        ),
        (
            "banks --tile 32x32 --layout '(16,16):(16,1)' --access 'ld.32 @ 32:1'",
            2,
            "leave out `--tile`",
        ),
        (
            "banks --tile 32x32 --access 'ld.32 @ 32:1' --model amd-gcn",
            2,
            "`--model` goes with `--csv`",
        ),
        (
            "banks --csv x --kernel k",
            2,
            "cannot be used with '--kernel <NAME>'",
        ),
        (
            "banks --csv src/main.rs --model nope",
            2,
            "there is no bank model `nope`; known are nvidia",
        ),
    ]);
}

#[test]
fn pictures_and_index_code_are_refused_in_plain_words() {
    all(&[
        ("show", 2, "<LAYOUT>"),
        ("show ''", 2, "expected an integer or a tuple"),
        ("show 'foo(1)'", 2, "there is no function 'foo'"),
        (
            "show '(4,8):(8,1)' --banks --elem f99",
            2,
            "there is no element type `f99`; known are f16",
        ),
        (
            "show '(4,8):(8,1)' --model nope",
            2,
            "there is no model `nope` of a banked memory; known are nvidia",
        ),
        ("show '(4,8):(8,1)' --access x", 2, "expected '@'"),
        ("show '(16,64):(64,1)' --rows 3..1", 2, "within 0..16"),
        (
            "show '(16,64):(64,1)' --rows -1",
            2,
            "expected a range such as 0..64",
        ),
        ("show '(16,64):(64,1)' --cols …", 2, "expected a range"),
        ("show '(16,64):(64,1)' --svg src", 1, "src: "),
        ("show '(16,64):(64,1)' --svg no/x.svg", 1, "no/x.svg: "),
        ("show '(16,64):(64,1)' --svg -", 2, "name a file"),
        (
            "show '(16,64):(64,1)' --svg no.x --html ./no.x",
            2,
            "are the same file",
        ),
        (
            "show --atom nope",
            2,
            "there is no such instruction; give one such as",
        ),
        ("show --atom x…", 2, "there is no such instruction"),
        (
            "show --atom mma.m16n8k16",
            2,
            "is not the whole name; there are",
        ),
        (
            "show --atom ldmatrix.x4 --operand A",
            2,
            "there is no operand `A` here; known are src, dst",
        ),
        (
            "show --atom wgmma.m64n999k16.bf16",
            2,
            "use a multiple of 8",
        ),
        ("index ''", 2, "expected an integer or a tuple"),
        ("index 5", 2, "for a layout, not for an integer"),
        ("index true", 2, "for a layout, not for a truth value"),
        ("index 'Sw<3,3,3>'", 2, "has no shape"),
        ("index 'A o B'", 2, "expected an integer or a tuple"),
        (
            "index '(4,8):(8,1)' --target nope",
            2,
            "invalid value 'nope'",
        ),
        (
            "index '(4,8):(8,1)' --name fn --target rust",
            2,
            "is a keyword of Rust",
        ),
        (
            "index '(4,8):(8,1)' --name gen --target rust",
            2,
            "is a keyword of Rust",
        ),
        (
            "index '(4,8):(8,1)' --name NULL",
            2,
            "is a macro of C's headers",
        ),
        ("index '(4,8):(8,1)' --name ''", 2, "is no identifier"),
        ("index '(4,8):(8,1)' --name ü", 2, "is no identifier"),
        ("index '(4,8):(8,1)' --coords a,a", 2, "is used twice"),
        (
            "index '(4,8):(8,1)' --coords a,b,c",
            2,
            "3 coordinates for a layout of rank 2",
        ),
        (
            "index '(4,8):(8,1)' --type u8",
            2,
            "known are u32, i32, u64, i64",
        ),
        ("index '(4,8):(-8,1)' --type u32", 1, "choose a wider type"),
        ("index '(4,8):(ld,1)' --range ld=3..1", 2, "it is empty"),
        (
            "index '(4,8):(ld,1)' --range ld=…..",
            2,
            "expected NAME=FROM..TO",
        ),
    ]);
}

#[test]
fn products_are_refused_in_plain_words() {
    all(&[
        (
            "gemm --on none --dtype nope",
            2,
            "there is no element type `nope` here; known are f32",
        ),
        ("gemm --on none --m -1", 2, "sizes are 0 or more"),
        ("gemm --on none --m …", 2, "give a whole number"),
        ("gemm --on none --m 1e3", 2, "give a whole number"),
        (
            "gemm --on none --m 4294967296",
            1,
            "m can be at most 2130706432",
        ),
        ("gemm --on none --trans xx", 2, "give nn, nt, tn or tt"),
        ("gemm --on none --lda 3", 2, "lda must be at least 256"),
        (
            "gemm --on none --ctype nope",
            2,
            "no C of type `nope`; known is f32",
        ),
        (
            "gemm --on none --dtype f16 --ctype f64",
            2,
            "known are f32, f16, bf16",
        ),
        (
            "gemm --on none --bias nope",
            2,
            "give one of none, row, column",
        ),
        ("gemm --on none --batch 0", 2, "give at least 1"),
        ("gemm --on none --align 3", 2, "give a power of two"),
        ("gemm --on none --align 1", 2, "A is aligned to 1 byte:"),
        (
            "gemm --on none --alpha nan",
            2,
            "alpha must be a finite number",
        ),
        (
            "gemm --on none --alpha …",
            2,
            "alpha must be a finite number",
        ),
        ("gemm --on none --alpha x", 2, "give a number"),
        (
            "gemm --on none --dtype s8 --alpha 0.5",
            2,
            "a whole number of 32 bits",
        ),
        (
            "gemm --on none --plan nope",
            2,
            "there is no plan `nope`; `tilewright plans` lists them",
        ),
        ("gemm --on none --plan x…", 2, "there is no plan `x999"),
        (
            "gemm --on none --plan sgemm-maxas-6",
            2,
            "did you mean sgemm-maxas-64?",
        ),
        ("gemm --on none --split 0", 2, "give 1 to 1024"),
        ("gemm --on none --split -1", 2, "give 1 to 1024"),
        ("gemm --on none --arch sm_1", 2, "known are sm_75"),
        (
            "gemm --on none --target opencl --dtype bf16",
            1,
            "give `--dtype f32` or `f64`",
        ),
        (
            "gemm --on none --banks nvidia",
            2,
            "`--banks` goes with `--target opencl`",
        ),
        ("gemm --on none --emit -", 2, "name a file"),
        (
            "gemm --on none --emit-host java x",
            2,
            "cudarc, rust, c or python",
        ),
        ("gemm --on nope", 2, "invalid value 'nope'"),
        ("gemm --on none --seed -1", 2, "give a whole number"),
        ("gemm --on none --seed …", 2, "this number is too large"),
        ("gemm --on none --findings nope.json", 1, "nope.json: "),
        ("plans nope", 2, "there is no plan `nope`"),
        ("plans --for 1x2", 2, "give MxNxK"),
        ("plans --dtype f16", 2, "--for <MxNxK>"),
        ("bench --shapes x", 2, "give MxNxK"),
        ("bench --repeats -1", 2, "at least 1"),
        ("tune", 2, "--out <FILE>"),
        ("tune --out src", 1, "src: "),
        ("completions tcsh", 2, "possible values: bash"),
        ("man --dir no/folder", 1, "no/folder/tilewright.1: "),
        ("doctor x", 2, "unexpected argument 'x'"),
    ]);
}

#[test]
fn runs_are_refused_in_plain_words() {
    all(&[
        (
            "run k.ptx --arg buf:u32:4=same.bin --arg u32:1 --buffer z=buf:u32:4=./same.bin",
            2,
            "are the same file",
        ),
        ("run nope.ptx", 1, "nope.ptx: "),
        ("run ..", 1, "..: "),
        ("run k.ptx", 2, "add --arg p=buf:f32:1024"),
        (
            "run k.ptx --arg buf:u32:4 --arg u32:5 --kernel nope",
            2,
            "it has: k",
        ),
        (
            "run k.ptx --arg buf:u32:4 --arg u32:5 --grid 0",
            2,
            "every dimension is at least 1",
        ),
        (
            "run k.ptx --arg buf:u32:4 --arg u32:5 --grid -1",
            2,
            "is not a number of 32 bits",
        ),
        (
            "run k.ptx --arg buf:u32:4 --arg u32:5 --grid 1,2,3,4",
            2,
            "at most three dimensions",
        ),
        (
            "run k.ptx --arg buf:u32:4 --arg u32:5 --grid 4294967295,1,1",
            2,
            "a grid of 4294967295×1×1 blocks; at most",
        ),
        (
            "run k.ptx --arg buf:u32:4 --arg u32:5 --block 1025",
            2,
            "1 to 1024 in all",
        ),
        (
            "run k.ptx --arg buf:u32:4 --arg u32:5 --cluster 3",
            2,
            "a grid of 1×1×1 blocks is not a multiple of a cluster of 3×1×1",
        ),
        (
            "run k.ptx --arg buf:u32:4 --arg u32:5 --cluster 17",
            2,
            "a cluster of 17×1×1 blocks; 1 to 16",
        ),
        (
            "run k.ptx --arg buf:u32:4 --arg u32:5 --shared 1000000",
            2,
            "a block can have 232448",
        ),
        (
            "run k.ptx --arg buf:u32:4 --arg u32:5 --shared -1",
            2,
            "give 0 to",
        ),
        (
            "run k.ptx --arg buf:u32:4 --arg u32:5 --arg u32:1",
            2,
            "3 arguments for 2 parameters",
        ),
        (
            "run k.ptx --arg buf:u32:4 --arg u32:5 --schedules 0",
            2,
            "give 1 to 1000000",
        ),
        (
            "run k.ptx --arg buf:u32:4 --arg u32:5 --print x",
            2,
            "give a whole number",
        ),
        (
            "run k.ptx --arg buf:u32:4 --arg u32:5 --profile-html -",
            2,
            "name a file",
        ),
        (
            "run k.ptx --arg buf:u32:4 --arg u32:5 --buffer x",
            2,
            "TYPE:VALUE",
        ),
        (
            "run k.ptx --arg u32:-1 --arg n=u32:1",
            2,
            "`-1` is not a u32",
        ),
        ("run k.ptx --arg u32:… --arg n=u32:1", 2, "is not a u32"),
        (
            "run k.ptx --arg f32:x --arg n=u32:1",
            2,
            "`x` is not an f32",
        ),
        (
            "run k.ptx --arg f32:1 --arg n=u32:1",
            2,
            "has 4 bytes, but the parameter has 8",
        ),
        ("run k.ptx --arg bytes:zz --arg n=u32:1", 2, "hexadecimal"),
        (
            "run k.ptx --arg buf:u33:4 --arg n=u32:1",
            2,
            "there is no element type `u33`",
        ),
        (
            "run k.ptx --arg buf:u32:4:nope --arg n=u32:1",
            2,
            "is no way to fill a buffer",
        ),
        (
            "run k.ptx --arg buf:u32:4:1e300 --arg n=u32:1",
            2,
            "an element of type u32 cannot hold 1e300",
        ),
        (
            "run k.ptx --arg buf:u32:4:-1 --arg n=u32:1",
            2,
            "cannot hold -1",
        ),
        (
            "run k.ptx --arg buf:u32:… --arg n=u32:1",
            2,
            "at most 8 GiB",
        ),
        ("run k.ptx --arg buf:u32:none --arg n=u32:1", 1, "none: "),
        (
            "run k.ptx --arg buf:u32:4=- --arg n=u32:1",
            2,
            "name a file",
        ),
        (
            "run k.ptx --arg ref:nope --arg n=u32:1",
            2,
            "there is no buffer `nope`",
        ),
        (
            "run k.ptx --arg q=u32:1 --arg n=u32:1",
            2,
            "there is no parameter `q`",
        ),
        (
            "run k.ptx --arg ü:1 --arg n=u32:1",
            2,
            "there is no argument type `ü`",
        ),
    ]);
}

#[test]
fn products_over_devices_are_refused_in_plain_words() {
    all(&[
        (
            "gemm --devices 2 --on emulator --movement collective --m 65 --n 64 --k 32",
            1,
            "it takes equal shards of whole rows as they are stored",
        ),
        (
            "gemm --devices 2 --on emulator --movement collective --m 64 --n 64 --k 32 --trans tn",
            1,
            "use `--movement copies`",
        ),
        (
            "gemm --devices 2 --on emulator --movement collective --m 64 --n 64 --k 32 --beta 1 --shards columns,rows,rows",
            1,
            "nothing added after a reduce-scatter",
        ),
        (
            "gemm --devices 2 --on emulator --movement direct --m 64 --n 64 --k 32",
            1,
            "direct stores take A and B that are cut along k alike",
        ),
        (
            "gemm --devices 2 --on emulator --movement direct --m 64 --n 64 --k 32 --beta 1 --shards columns,rows,rows",
            1,
            "and β = 0; use `--movement copies`",
        ),
        (
            "gemm --devices 2 --movement direct --m 64 --n 64 --k 32 --shards columns,rows,rows --rank 0 --meet localhost:1",
            2,
            "another process's memory",
        ),
        (
            "gemm --devices 1 --on emulator --movement collective --m 64 --n 64 --k 32",
            1,
            "nothing moves with these shards",
        ),
        (
            "tune --out f.json --csv ./f.json",
            2,
            "are the same file; give each output its own",
        ),
        ("tune --out f.json --random 100001", 2, "give 1 to 100000"),
        ("tune --out f.json --repeats 0", 2, "10000"),
        (
            "tune --out f.json --within inf",
            2,
            "a finite number, at least 1",
        ),
        (
            "plans --for 18446744073709551615x18446744073709551615x18446744073709551615",
            1,
            "",
        ),
        (
            "gemm --m 64 --n 64 --k 64 --dtype f16 --lda 9223372036854775808 --on emulator",
            1,
            "",
        ),
        (
            "gemm --devices 2 --m 64 --n 64 --k 32 --shards rows,columns",
            2,
            "give three, of A, B and C",
        ),
        (
            "gemm --devices 2 --m 64 --n 64 --k 32 --rank 2",
            2,
            "--meet",
        ),
        (
            "gemm --devices 2 --m 64 --n 64 --k 32 --rank 2 --meet h:1",
            2,
            "the ranks are 0 to 1",
        ),
        (
            "plans --for 64x64x64 --devices 2 --movement sometimes",
            2,
            "[possible values: auto, copies, direct, collective]",
        ),
        ("plans --for 64x64x64 --movement copies", 2, "--devices"),
    ]);
}
