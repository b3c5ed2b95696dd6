//! `tilewright run` as a user calls it: arguments by name, structures with pointers, lists, and limits.

mod common;

use std::path::{Path, PathBuf};
use std::process::Output;

use common::tilewright;
use serde_json::{Value, json};

/// x[i] ← x[i] + p.add[0]·p.scale for a structure p = { u32 n; f32 *add; f32 scale; }.
const SCALED: &str = ".version 7.0
.target sm_75
.address_size 64
.visible .entry add_scaled(.param .u64 x, .param .align 8 .b8 p[24])
{
    .reg .pred %out;
    .reg .b32 %i, %n;
    .reg .f32 %v, %a, %s;
    .reg .b64 %x, %add, %at;
    ld.param.u64 %x, [x];
    ld.param.u32 %n, [p];
    ld.param.u64 %add, [p+8];
    ld.param.f32 %s, [p+16];
    mov.u32 %i, %tid.x;
    setp.ge.u32 %out, %i, %n;
    @%out bra DONE;
    mul.wide.u32 %at, %i, 4;
    add.u64 %x, %x, %at;
    ld.global.f32 %v, [%x];
    ld.global.f32 %a, [%add];
    fma.rn.f32 %v, %a, %s, %v;
    st.global.f32 [%x], %v;
DONE:
    ret;
}
.visible .entry spin(.param .u32 n) .reqntid 32, 1, 1
{
    .shared .b8 tile[256];
AGAIN:
    bra AGAIN;
}
.visible .entry nothing(.param .u32 n)
{
    ret;
}
.visible .entry relies_on_order(.param .u64 flag)
{
    .reg .pred %first, %early;
    .reg .b32 %i, %v;
    .reg .b64 %flag;
    ld.param.u64 %flag, [flag];
    mov.u32 %i, %tid.x;
    setp.lt.u32 %first, %i, 32;
    @%first st.volatile.global.u32 [%flag], 1;
    @%first bra DONE;
    ld.volatile.global.u32 %v, [%flag];
    setp.eq.u32 %early, %v, 0;
    @%early trap;
DONE:
    ret;
}
";

struct File(PathBuf);

impl File {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("run_{test}_{}.ptx", std::process::id()));
        std::fs::write(&path, SCALED).expect("written");
        Self(path)
    }

    fn run(&self, args: &[&str]) -> Output {
        let path = self.0.display().to_string();
        tilewright(&[&["run", &path], args].concat())
    }

    fn json(&self, args: &[&str]) -> Value {
        let output = self.run(&[args, &["--json"]].concat());
        serde_json::from_slice(&output.stdout).expect("JSON")
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // A file that is left behind does no harm.
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn structures_hold_pointers_and_arguments_have_names() {
    let file = File::new("structures");
    let report = file.json(&[
        "--kernel",
        "add_scaled",
        "--buffer",
        "y=buf:f32:4:iota",
        "--arg",
        "p=struct:u32:3,ref:y+8,f32:0.05",
        "--arg",
        "x=buf:f32:4:iota",
    ]);
    assert_eq!(report["passed"], true, "{report}");
    let buffers = report["buffers"].as_array().expect("buffers");
    let names: Vec<&Value> = buffers.iter().map(|b| &b["name"]).collect();
    assert_eq!(names, ["y", "x"]);
    // Two thirds of a digit are not shown: the numbers are those of f32, as short as they can be.
    assert_eq!(buffers[1]["first"], json!([0.1, 1.1, 2.1, 3.0]));
}

#[test]
fn a_list_says_what_kernels_take() {
    let file = File::new("list");
    let list = file.json(&["--list"]);
    let kernels = list["kernels"].as_array().expect("kernels");
    assert_eq!(kernels.len(), 4);
    assert_eq!(kernels[0]["params"][1]["bytes"], 24);
    assert_eq!(kernels[1]["required_threads"], json!([32, 1, 1]));
    assert_eq!(kernels[1]["static_shared_bytes"], 256);
    let text = String::from_utf8(file.run(&["--list", "--kernel", "spin"]).stdout).expect("text");
    assert_eq!(
        text,
        "spin\n  n  u32        --arg n=u32:0\n  blocks of 32×1×1 threads\n  256 bytes of static shared memory\n"
    );
    assert_eq!(
        file.run(&["--list", "--kernel", "spun"]).status.code(),
        Some(2)
    );
}

#[test]
fn an_argument_that_is_missing_is_named() {
    let file = File::new("missing");
    let report = file.json(&["--kernel", "spin"]);
    assert_eq!(report["error"]["code"], "wrong_arguments");
    assert_eq!(
        report["error"]["message"],
        "the parameter `n` (u32) has no argument: add --arg n=u32:0"
    );
}

#[test]
fn the_step_limit_is_that_of_the_whole_run() {
    let file = File::new("limit");
    let kernel = |name, more: &[&str]| {
        let args = [
            "--kernel",
            name,
            "--arg",
            "n=u32:0",
            "--step-limit",
            "1000000",
        ];
        file.json(&[&args, more].concat())
    };
    let report = kernel("spin", &[]);
    assert_eq!(report["findings"][0]["kind"], "step_limit", "{report}");
    // More blocks than anyone waits for.
    let report = kernel("nothing", &["--grid", "2147483647,65535,65535"]);
    assert_eq!(report["total_findings"], 1, "{report}");
    let message = report["findings"][0]["message"]
        .as_str()
        .expect("a message");
    assert!(
        message.starts_with(
            "the run executed more than 1000000 warp instructions; it was given up with"
        ),
        "{message}"
    );
    let report = kernel("nothing", &["--grid", "1000"]);
    assert_eq!(report["passed"], true, "{report}");
}

#[test]
fn what_does_not_fit_is_refused_before_it_is_used() {
    let file = File::new("large");
    let mut args = vec!["--kernel", "spin", "--arg", "u32:0"];
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        args.extend(["--buffer", name]);
    }
    // 64 GiB, thrice.
    let named: Vec<String> = args
        .iter()
        .map(|arg| match arg.len() {
            1 => format!("{arg}=buf:u8:8589934592:zero"),
            _ => (*arg).to_owned(),
        })
        .collect();
    let args: Vec<&str> = named.iter().map(String::as_str).collect();
    let report = file.json(&args);
    assert_eq!(report["error"]["code"], "too_large", "{report}");
    let message = report["error"]["message"].as_str().expect("a message");
    assert!(
        message.starts_with("the buffers would take 200 GiB of memory"),
        "{message}"
    );

    if Path::new("/dev/zero").exists() {
        for (args, code) in [
            (&["run", "/dev/zero", "--json"][..], "too_large"),
            (&["banks", "--csv", "/dev/zero", "--json"], "csv_line"),
            (
                &["gemm", "--findings", "/dev/zero", "--json"],
                "findings_too_large",
            ),
        ] {
            let output = tilewright(args);
            let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            assert_eq!(report["error"]["code"], code, "{report}");
            assert_eq!(output.status.code(), Some(1));
        }
    }
}

/// Whatever `ulimit -v` leaves, a run ends with its result or with an error of its own, never by a signal or a panic.
#[cfg(target_os = "linux")]
#[test]
fn a_limit_on_the_address_space_is_an_error() {
    let exhibit = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../emulator/museum/missing_barrier.ptx"
    );
    // Mebibytes of the limit and words of each of two buffers. A process needs some twenty to start.
    let mut codes = Vec::new();
    for (limit, words) in [
        (60, "1024"),
        (100, "1024"),
        (100, "4000000"),
        (200, "8000000"),
        (300, "8000000"),
        (400, "16000000"),
        (1000, "8000000"),
    ] {
        let buffer = format!("buf:u32:{words}");
        let output = std::process::Command::new("sh")
            .args([
                "-c",
                &format!("ulimit -v {} && exec \"$@\"", limit * 1024),
                "sh",
            ])
            .arg(env!("CARGO_BIN_EXE_tilewright"))
            .args([
                "run", exhibit, "--kernel", "fixed", "--block", "64", "--json",
            ])
            .args(["--arg", &buffer, "--arg", &buffer])
            .output()
            .expect("a shell");
        let said = String::from_utf8_lossy(&output.stdout);
        let report: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|e| panic!("{limit} MiB, {words} words: {e}: {said} {output:?}"));
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 1)), "{limit} MiB: {output:?}");
        if code == Some(1) {
            assert_eq!(report["error"]["code"], "too_large", "{report}");
        }
        codes.push(code.unwrap_or(-1));
    }
    // Both happen.
    assert_eq!((codes[1], codes[3], codes[6]), (0, 1, 0), "{codes:?}");
}

/// An exhibit of the emulator's museum, whose kernels take a tensor map.
#[test]
fn tensor_maps_are_arguments() {
    let exhibit = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../emulator/museum/clipped_box_counts_in_full.ptx"
    );
    let run = |kernel: &str, map: &str| {
        common::json(&[
            "run",
            exhibit,
            "--kernel",
            kernel,
            "--block",
            "64",
            "--arg",
            "buf:u32:64:zero",
            "--arg",
            "buf:u32:2048:iota",
            "--arg",
            map,
        ])
    };
    let map = "map=tensor:f16:64x64:box=64x8:swizzle=128:of=in";
    let (code, report) = run("bug", map);
    assert_eq!((code, &report["passed"]), (1, &json!(false)));
    assert_eq!(report["findings"][0]["kind"], "transaction_count");
    let (code, report) = run("fixed", map);
    assert_eq!((code, &report["passed"]), (0, &json!(true)), "{report}");
    // Row 60 of 32 words, its chunks in the order of the swizzle: 60 * 32, …
    assert_eq!(report["buffers"][0]["first"][0], 1920);
    for (map, says) in [
        (
            "map=tensor:f16:64x64:box=64x300:of=in",
            "has box sizes from 1 to 256",
        ),
        (
            "map=tensor:f16:60x64:box=64x8:of=in",
            "multiples of 16 bytes",
        ),
        (
            "map=tensor:f16:64x64:box=64x8:of=in+8",
            "an address that is a multiple of 16",
        ),
        (
            "map=tensor:f16:64x64:box=64x8:of=nowhere",
            "there is no buffer `nowhere`",
        ),
        ("map=bytes:00", "128"),
    ] {
        let (code, error) = run("fixed", map);
        let message = error["error"]["message"].as_str().unwrap_or("").to_owned();
        assert_eq!(code, 2, "{map}: {error}");
        assert!(message.contains(says), "{map}: {message}");
    }
    let list = tilewright(&["run", exhibit, "--list"]);
    let list = String::from_utf8(list.stdout).expect("UTF-8");
    assert!(list.contains("--arg map=tensor:f16:"), "{list}");
}

#[test]
fn a_profile_counts_by_line() {
    let file = File::new("profile");
    let page = file.0.with_extension("html");
    let args = [
        "--kernel",
        "add_scaled",
        "--buffer",
        "y=buf:f32:4:iota",
        "--arg",
        "x=buf:f32:32:iota",
        "--arg",
        "p=struct:u32:32,ref:y,f32:1",
    ];
    let html = page.display().to_string();
    let report = file.json(&[&args[..], &["--profile", "--profile-html", &html]].concat());
    let profile = &report["profile"];
    assert_eq!(
        profile["traffic"],
        json!({"global_bytes": 384, "shared_bytes": 0, "local_bytes": 0, "requests": 3, "sectors": 9, "ideal_sectors": 12}),
        "{profile}"
    );
    let lines = profile["lines"].as_array().expect("lines");
    let load = lines
        .iter()
        .find(|l| l["opcode"] == "ld.global.f32")
        .expect("a load");
    assert_eq!((&load["warps"], &load["lanes"]), (&json!(1), &json!(32)));
    assert_eq!(load["traffic"]["sectors"], 4);
    let text = std::fs::read_to_string(&page).expect("the page");
    assert!(
        text.contains("<pre>    ld.global.f32 %v, [%x];</pre>"),
        "{text}"
    );
    let _ = std::fs::remove_file(&page);
    let text = String::from_utf8(file.run(&[&args[..], &["--profile", "3"]].concat()).stdout);
    let text = text.expect("text");
    assert!(
        text.contains("global memory: 9 sectors in 3 requests, 3.00 each; 12 would hold the bytes"),
        "{text}"
    );
}

#[test]
fn other_orders_find_what_the_usual_one_hides() {
    let file = File::new("schedules");
    let run = |more: &[&str]| {
        let args = [
            "--kernel",
            "relies_on_order",
            "--block",
            "64",
            "--arg",
            "buf:u32:1:zero",
        ];
        file.json(&[&args, more].concat())
    };
    assert_eq!(run(&[])["passed"], true);
    let report = run(&["--schedules", "50"]);
    assert_eq!(report["findings"][0]["kind"], "trap", "{report}");
    let seed = report["schedules"]["finding"].as_u64().expect("a seed");
    // The seed replays it.
    let again = run(&["--schedule", &seed.to_string()]);
    assert_eq!(again["findings"], report["findings"]);
}

/// A file of its own for `text`.
fn file_of(test: &str, text: &str) -> File {
    let file = File::new(test);
    std::fs::write(&file.0, text).expect("written");
    file
}

/// A kernel that copies 64 words by the tensor map that `map` is the address of.
fn copies_by(params: &str, before: &str, map: &str) -> String {
    format!(
        ".version 8.0
.target sm_90
.address_size 64
{before}
.visible .entry k({params}.param .u64 out)
{{
    .reg .b32 %r<8>; .reg .b64 %m, %o, %g; .reg .pred %p, %d;
    .shared .align 128 .b8 data[256];
    .shared .align 8 .b64 bar;
    {map}
    ld.param.u64 %o, [out];
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %g, %r0, 4;
    setp.ne.u32 %p, %r0, 0;
    @%p bra W;
    mov.u32 %r1, bar;
    mov.u32 %r2, data;
    mov.u32 %r3, 0;
    mbarrier.init.shared::cta.b64 [%r1], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 256;
    cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%m, {{%r3}}], [%r1];
W:
    bar.sync 0;
L:
    mbarrier.try_wait.parity.shared::cta.b64 %d, [bar], 0;
    @!%d bra L;
    mov.u32 %r2, data;
    mad.lo.u32 %r2, %r0, 4, %r2;
    ld.shared.u32 %r5, [%r2];
    add.u64 %g, %g, %o;
    st.global.u32 [%g], %r5;
    ret;
}}
"
    )
}

#[test]
fn tensor_maps_are_members_of_structures_and_variables() {
    const MAP: &str = "tensor:u32:64:box=64:of=in";
    let struct_of = |members: &str| format!("p=struct:{members}");
    let parameter = |at: u32| {
        copies_by(
            ".param .align 64 .b8 p[256], ",
            "",
            &format!("mov.b64 %m, p; cvta.param.u64 %m, %m; add.u64 %m, %m, {at};"),
        )
    };
    let variable = |space: &str| {
        copies_by(
            "",
            &format!(".visible .{space} .align 64 .b8 map[128];"),
            &format!("mov.u64 %m, map; cvta.{space}.u64 %m, %m;"),
        )
    };
    let cases = [
        // At the start, behind a number, the second of an array.
        (
            parameter(0),
            vec!["--arg".to_owned(), struct_of(&format!("{MAP},zero:128"))],
        ),
        (
            parameter(64),
            vec![
                "--arg".to_owned(),
                struct_of(&format!("u32:7,{MAP},zero:64")),
            ],
        ),
        (
            parameter(128),
            vec![
                "--arg".to_owned(),
                struct_of(&format!("tensor:u8:16:box=16:of=in,{MAP}")),
            ],
        ),
        (
            variable("const"),
            vec!["--variable".to_owned(), format!("map={MAP}")],
        ),
        (
            variable("global"),
            vec!["--variable".to_owned(), format!("map={MAP}")],
        ),
    ];
    for (text, given) in cases {
        let file = file_of("maps", &text);
        let given: Vec<&str> = given.iter().map(String::as_str).collect();
        let fixed = [
            "--block",
            "64",
            "--buffer",
            "in=buf:u32:64:iota",
            "--arg",
            "out=buf:u32:64",
        ];
        let report = file.json(&[&fixed[..], &given].concat());
        assert_eq!(report["passed"], true, "{report}");
        let out = &report["buffers"][1]["first"];
        assert_eq!(*out, json!([0, 1, 2, 3, 4, 5, 6, 7]), "{given:?}");
    }
}

#[test]
fn variables_are_set_and_shown() {
    let file = file_of(
        "variables",
        ".version 7.0
.target sm_75
.address_size 64
.visible .const .align 4 .b8 table[16];
.visible .global .align 4 .u32 scale = 3;
.visible .global .align 4 .b8 out[16] = {9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9};
.visible .entry k()
{
    .reg .b32 %i, %v, %s; .reg .b64 %t, %o, %x; .reg .pred %p;
    mov.u32 %i, %tid.x;
    setp.gt.u32 %p, %i, 2;
    @%p ret;
    mov.u64 %t, table;
    mul.wide.u32 %x, %i, 4;
    add.u64 %t, %t, %x;
    ld.const.u32 %v, [%t];
    ld.global.u32 %s, [scale];
    mul.lo.u32 %v, %v, %s;
    mov.u64 %o, out;
    add.u64 %o, %o, %x;
    st.global.u32 [%o], %v;
    ret;
}
",
    );
    let first = |report: &Value, name: &str| {
        let all = report["buffers"].as_array().expect("buffers");
        let found = all.iter().find(|b| b["name"] == name);
        found.map(|b| b["first"].clone())
    };
    // What is not given keeps the module's bytes: the last word, and `scale`.
    let table = [
        "--variable",
        "table=buf:u32:4:iota",
        "--variable",
        "out=buf:u32:4",
    ];
    let report = file.json(&table);
    assert_eq!(report["passed"], true, "{report}");
    assert_eq!(first(&report, "out"), Some(json!([0, 3, 6, 0x0909_0909])));
    let more = ["--variable", "scale=u32:10"];
    let report = file.json(&[&table[..], &more].concat());
    assert_eq!(first(&report, "out"), Some(json!([0, 10, 20, 0x0909_0909])));
    let report = file.json(&[&table[..2], &["--variable", "scale=buf:u32:1:5"]].concat());
    assert_eq!(first(&report, "scale"), Some(json!([5])));
    for (variable, says) in [
        (
            "tables=u32:1",
            "there is no variable `tables`; the file has table, scale, out",
        ),
        ("table=u32:1", "the variable `table` has 16 bytes, not 4"),
        (
            "table=buf:u32:5",
            "the variable `table` has 16 bytes, not 20",
        ),
        ("u32:1", "a variable is NAME=VALUE"),
    ] {
        let report = file.json(&["--variable", variable]);
        let message = report["error"]["message"].as_str().unwrap_or("");
        assert!(message.contains(says), "{variable}: {report}");
    }
    let report = file.json(&["--variable", "scale=u32:1", "--variable", "scale=u32:2"]);
    let message = report["error"]["message"].as_str().unwrap_or("");
    assert!(message.contains("`scale` is set twice"), "{report}");
    let list = String::from_utf8(file.run(&["--list"]).stdout).expect("text");
    assert!(
        list.contains("variable table  16 bytes  --variable table=buf:u8:16"),
        "{list}"
    );
}

#[test]
fn textures_are_arguments_and_variables() {
    let file = file_of(
        "textures",
        ".version 8.0
.target sm_75
.address_size 64
.global .texref image;
.visible .entry k(.param .u64 tex, .param .u64 surface, .param .u64 out)
{
    .reg .b32 %i, %x; .reg .f32 %f<5>, %g<4>; .reg .b64 %t, %s, %o;
    ld.param.u64 %t, [tex];
    ld.param.u64 %s, [surface];
    ld.param.u64 %o, [out];
    mov.u32 %i, %tid.x;
    cvt.rn.f32.u32 %f4, %i;
    tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%f4, 0f3f800000}];
    tex.2d.v4.f32.f32 {%g0, %g1, %g2, %g3}, [image, {%f4, 0f3f000000}];
    mad.wide.u32 %o, %i, 8, %o;
    st.global.v2.f32 [%o], {%f0, %g0};
    shl.b32 %x, %i, 2;
    sust.b.1d.b32.zero [%s, {%x}], %f0;
    ret;
}
",
    );
    let report = file.json(&[
        "--block",
        "4",
        "--buffer",
        "a=buf:f32:8:iota",
        "--buffer",
        "b=buf:f32:4:zero",
        "--arg",
        "tex=texture:f32:4x2:filter=linear:of=a",
        "--arg",
        "surface=texture:f32:3:of=b",
        "--arg",
        "out=buf:f32:8",
        "--variable",
        "image=texture:f32:4x2:address=border:border=-1:of=a",
    ]);
    assert_eq!(report["passed"], true, "{report}");
    // Between rows 0 and 1, columns i − 1 and i; then texel i of row 0.
    let out = json!([2.0, 0.0, 2.5, 1.0, 3.5, 2.0, 4.5, 3.0]);
    assert_eq!(report["buffers"][2]["first"], out);
    assert_eq!(report["buffers"][1]["first"], json!([2.0, 2.5, 3.5, 0.0]));
}
