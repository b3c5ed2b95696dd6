//! `show`, seen from outside: the data against brute force, the structure of the pictures, errors, files.
//!
//! The tests know nothing of how pictures are made. They read the SVG back, measure its texts with widths on the safe side and
//! check that none is cut, touches another or is crossed by a line between cells.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn show_in(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tilewright"))
        .arg("show")
        .args(args)
        .env_remove("COLUMNS")
        .env_remove("COLORTERM")
        .env_remove("NO_COLOR")
        .current_dir(folder)
        .output()
        .expect("the command starts")
}

fn show(args: &[&str]) -> Output {
    show_in(Path::new("."), args)
}

fn text_of(args: &[&str]) -> String {
    let output = show(args);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{args:?}: {errors}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn json(args: &[&str]) -> (i32, Value) {
    let output = show(&[args, &["--json"]].concat());
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(text.lines().count(), 1, "{args:?} prints {text}");
    let code = output.status.code().expect("an exit code, not a signal");
    (code, serde_json::from_str(&text).expect("one JSON value"))
}

/// The file that `--svg` or `--html` writes.
fn file(option: &str, args: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("picture");
    let path_text = path.display().to_string();
    text_of(&[args, &[option, &path_text]].concat());
    std::fs::read_to_string(&path).expect("written")
}

// The data against brute force.

/// One panel's cells by (row, column).
fn cells(panel: &Value) -> BTreeMap<(i64, i64), &Value> {
    let list = panel["cells"].as_array().expect("cells");
    list.iter()
        .map(|cell| {
            let at = |key: &str| cell[key].as_i64().expect("an integer");
            ((at("row"), at("col")), cell)
        })
        .collect()
}

/// Wavefronts of 16-byte rows in phases of 8 lanes, from the definition.
fn wavefronts_of_16_bytes(addresses: &[i64]) -> u32 {
    let cost = |phase: &[i64]| {
        let mut words: HashMap<i64, Vec<i64>> = HashMap::new();
        for address in phase {
            for word in address / 4..address / 4 + 4 {
                let asked = words.entry(word % 32).or_default();
                if !asked.contains(&word) {
                    asked.push(word);
                }
            }
        }
        words.values().map(Vec::len).max().unwrap_or(0) as u32
    };
    addresses.chunks(8).map(cost).sum()
}

/// `Sw<3,3,3>` on halves in rows of 64, written by hand.
fn swizzled(row: i64, col: i64) -> i64 {
    (row * 64 + col) ^ ((row & 7) << 3)
}

#[test]
fn cells_are_what_the_layout_says() {
    let (exit, value) = json(&[
        "Sw<3,3,3> o (64,64):(64,1)",
        "--access",
        "ldmatrix.x4 @ (16,2):(64,8)",
    ]);
    assert_eq!(exit, 0, "{value}");
    assert_eq!(value["elem_bytes"], 2);
    let panels = value["panels"].as_array().expect("panels");
    let offsets: [fn(i64, i64) -> i64; 2] = [|row, col| row * 64 + col, swizzled];
    assert_eq!(panels.len(), 2);
    for (panel, offset) in panels.iter().zip(offsets) {
        let cells = cells(panel);
        assert_eq!(cells.len(), 64 * 64);
        // Lane l points at row l % 16, column 8 (l / 16).
        let starts: Vec<i64> = (0..32)
            .map(|lane| 2 * offset(lane % 16, 8 * (lane / 16)))
            .collect();
        for (&(row, col), cell) in &cells {
            let at = offset(row, col);
            assert_eq!(cell["offset"], at);
            assert_eq!(cell["bank"], 2 * at / 4 % 32);
            let lanes: Vec<i64> = (0..32)
                .filter(|&lane| {
                    let start = starts[lane as usize];
                    start <= 2 * at && 2 * at < start + 16
                })
                .collect();
            assert_eq!(cell["lanes"], serde_json::json!(lanes), "({row},{col})");
            match lanes.first() {
                Some(lane) => assert_eq!(cell["phase"], lane / 8),
                None => assert!(cell["lane"].is_null() && cell["phase"].is_null()),
            }
        }
        assert_eq!(
            panel["access"]["wavefronts"],
            wavefronts_of_16_bytes(&starts)
        );
        assert_eq!(panel["access"]["ideal"], 4);
    }
}

#[test]
fn offenders_are_named() {
    let (_, value) = json(&["(64,64):(64,1)", "--access", "ldmatrix.x4 @ (16,2):(64,8)"]);
    let panel = &value["panels"][0];
    assert_eq!(value["panels"].as_array().map(Vec::len), Some(1));
    for (number, phase) in panel["access"]["phases"]
        .as_array()
        .expect("phases")
        .iter()
        .enumerate()
    {
        assert_eq!(phase["wavefronts"], 8);
        let words = phase["words"].as_array().expect("words");
        let lanes: Vec<i64> = words
            .iter()
            .map(|word| word["lanes"][0].as_i64().expect("a lane"))
            .collect();
        let expected: Vec<i64> = (8 * number as i64..8 * number as i64 + 8).collect();
        assert_eq!(lanes, expected);
    }
    let text = text_of(&["(64,64):(64,1)", "--access", "ldmatrix.x4 @ (16,2):(64,8)"]);
    assert!(text.contains("phase 2 (lanes 16–23): 8 wavefronts where 1 would do; 8 different words of bank group 1 (banks 4–7) are asked for, by lane 16 at (0,8); lane 17 at (1,8)"), "{text}");
}

#[test]
fn other_ranks_and_signs_are_drawn() {
    // Rank 3: the modes after the first are columns, the second fastest.
    let (_, value) = json(&["(4,2,3):(1,100,10)"]);
    for (&(row, col), cell) in &cells(&value["panels"][0]) {
        assert_eq!(cell["offset"], row + 100 * (col % 2) + 10 * (col / 2));
    }
    assert!(value["notes"].to_string().contains("Rank 3"));
    // Rank 1: lines of 32, the last one short.
    let (_, value) = json(&["70:-3", "--banks"]);
    let line = cells(&value["panels"][0]);
    assert_eq!(line.len(), 70);
    for (&(row, col), cell) in &line {
        let offset = -3 * (32 * row + col);
        assert_eq!(cell["offset"], offset);
        assert_eq!(cell["bank"], offset.rem_euclid(32));
    }
    // Downwards from the last row: the same banks are asked as upwards.
    let costs = |layout: &str| {
        let (exit, value) = json(&[layout, "--access", "ld.32 @ 32:32"]);
        assert_eq!(exit, 0, "{value}");
        value["panels"]
            .as_array()
            .and_then(|p| p.last().cloned())
            .expect("a panel")["access"]["wavefronts"]
            .clone()
    };
    for (pitch, expected) in [(32, 32), (33, 1), (34, 2), (36, 4)] {
        assert_eq!(costs(&format!("(32,32):({pitch},1)")), expected);
        assert_eq!(costs(&format!("(32,32):(-{pitch},1)")), expected);
    }
}

#[test]
fn a_column_major_tile_gives_lanes_the_elements_below() {
    let (exit, value) = json(&["(8,8):(1,8)", "--access", "ld.128 @ (8,2):(1,32)"]);
    assert_eq!(exit, 0, "{value}");
    for (&(row, col), cell) in &cells(&value["panels"][0]) {
        assert_eq!(cell["lane"], col + 8 * (row / 4));
    }
    let notes = value["notes"].to_string();
    assert!(notes.contains("follow in memory"), "{notes}");
}

#[test]
fn broadcasts_and_the_pair_rule_are_told() {
    let (_, value) = json(&["(8,32):(32,1)", "--access", "ld.32 @ (4,8):(0,1)"]);
    let cells_of = cells(&value["panels"][0]);
    assert_eq!(
        cells_of[&(0, 3)]["lanes"],
        serde_json::json!([12, 13, 14, 15])
    );
    assert_eq!(value["panels"][0]["access"]["wavefronts"], 1);
    let (_, value) = json(&["(8,32):(32,1)", "--access", "ld.128 @ (2,16):(0,4)"]);
    assert!(value["notes"].to_string().contains("Pair rule"));
    assert_eq!(
        value["panels"][0]["access"]["phases"]
            .as_array()
            .map(Vec::len),
        Some(2)
    );
}

#[test]
fn fragments_agree_with_the_manual() {
    // A of m16n8k16: row g + 8((i>>1)&1), column 2t + (i&1) + 8(i>>2); two halves a register.
    let (_, value) = json(&["--atom", "mma.m16n8k16.f16", "--operand", "A"]);
    let a = cells(&value["panels"][0]);
    assert_eq!(a.len(), 256);
    for lane in 0..32 {
        for i in 0..8 {
            let at = (
                (lane >> 2) + 8 * ((i >> 1) & 1),
                2 * (lane & 3) + (i & 1) + 8 * (i >> 2),
            );
            assert_eq!(
                (&a[&at]["thread"], &a[&at]["value"], &a[&at]["register"]),
                (&lane.into(), &i.into(), &(i / 2).into())
            );
        }
    }
    // B: k = 2t + (i&1) + 8(i>>1), n = g.
    let (_, value) = json(&["--atom", "mma.m16n8k16.f16", "--operand", "b"]);
    let b = cells(&value["panels"][0]);
    for lane in 0..32 {
        for i in 0..4 {
            let at = (2 * (lane & 3) + (i & 1) + 8 * (i >> 1), lane >> 2);
            assert_eq!(
                (&b[&at]["thread"], &b[&at]["value"]),
                (&lane.into(), &i.into())
            );
        }
    }
    // D of wgmma: row 16w + g + 8((i>>1)&1), column 8(i>>2) + 2t + (i&1).
    let (_, value) = json(&["--atom", "wgmma.m64n32k16.bf16", "--operand", "D"]);
    let d = cells(&value["panels"][0]);
    assert_eq!(d.len(), 64 * 32);
    for thread in 0..128 {
        let (warp, lane) = (thread / 32, thread % 32);
        for i in 0..16 {
            let at = (
                16 * warp + (lane >> 2) + 8 * ((i >> 1) & 1),
                8 * (i >> 2) + 2 * (lane & 3) + (i & 1),
            );
            assert_eq!(
                (&d[&at]["thread"], &d[&at]["value"], &d[&at]["register"]),
                (&thread.into(), &i.into(), &i.into())
            );
        }
    }
    // ldmatrix.x4: lane l points at row l & 7 of matrix l >> 3; .trans: register j gets rows 2t, 2t+1 of column g.
    let (_, value) = json(&["--atom", "ldmatrix.x4.trans"]);
    let (src, dst) = (cells(&value["panels"][0]), cells(&value["panels"][1]));
    for lane in 0..32_i64 {
        for k in 0..8 {
            assert_eq!(src[&(lane & 7, 8 * (lane >> 3) + k)]["thread"], lane);
        }
        for j in 0..4 {
            for half in 0..2 {
                let cell = dst[&(2 * (lane & 3) + half, 8 * j + (lane >> 2))];
                assert_eq!(
                    (&cell["thread"], &cell["register"]),
                    (&lane.into(), &j.into())
                );
            }
        }
    }
    // Only the first 16 lanes' addresses count for .x2.
    let (_, value) = json(&["--atom", "ldmatrix.x2", "--operand", "src"]);
    assert!(
        cells(&value["panels"][0])
            .values()
            .all(|cell| cell["thread"].as_i64() < Some(16))
    );
}

// The structure of pictures.

/// A text of a picture: its box and what it says.
struct Letters {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    class: String,
    text: String,
}

/// The value of an attribute of a tag.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let start = tag.find(&format!(" {name}=\""))? + name.len() + 3;
    let length = tag[start..].find('"')?;
    Some(&tag[start..start + length])
}

fn number(text: &str) -> f64 {
    text.parse()
        .unwrap_or_else(|_| panic!("{text} is no number"))
}

/// Tags of a document in order, with the text behind each; panics unless they nest.
fn tags(document: &str) -> Vec<(&str, &str)> {
    let mut open: Vec<&str> = Vec::new();
    let mut found = Vec::new();
    for piece in document.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').expect("tags end");
        let name = tag.split([' ', '/']).next().unwrap_or_default();
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed), "tags nest");
        } else if !tag.ends_with('/') {
            open.push(name);
        }
        found.push((tag, text));
    }
    assert!(open.is_empty(), "left open: {open:?}");
    found
}

/// The texts of a picture, and the left, right, top and bottom of the outlined rectangles.
fn parts(svg: &str) -> (f64, f64, Vec<Letters>, Vec<[f64; 4]>) {
    let tags = tags(svg);
    let (width, height) = (
        number(attribute(tags[0].0, "width").expect("a width")),
        number(attribute(tags[0].0, "height").expect("a height")),
    );
    let style = tags.iter().find(|tag| tag.0 == "style").expect("a style").1;
    let size = |class: &str| {
        let rule = style
            .split(&format!(".tw .{class}{{font:"))
            .nth(1)
            .expect("a rule");
        number(
            rule.split(' ')
                .nth(1)
                .and_then(|size| size.strip_suffix("px"))
                .expect("a size"),
        )
    };
    let mut shift = (0.0, 0.0);
    let (mut texts, mut boxes) = (Vec::new(), Vec::new());
    for (tag, text) in tags {
        let pair = |transform: &str| {
            let inner = transform
                .strip_prefix("translate(")
                .and_then(|t| t.split(')').next());
            let (x, y) = inner
                .and_then(|t| t.split_once(' '))
                .expect("a translation");
            (number(x), number(y))
        };
        if tag.starts_with("g ") {
            shift = pair(attribute(tag, "transform").expect("a transform"));
        } else if tag == "/g" {
            shift = (0.0, 0.0);
        } else if tag.starts_with("text ") {
            let class = attribute(tag, "class").expect("a class");
            let size = size(class);
            let sans = class == "s" || class == "b";
            let plain = text
                .replace("&lt;", "<")
                .replace("&gt;", ">")
                .replace("&amp;", "&");
            let long = plain.chars().count() as f64 * size * if sans { 0.62 } else { 0.61 };
            if let Some(transform) = attribute(tag, "transform") {
                // The name of the vertical axis: its middle is here, and it runs upwards.
                let (x, y) = pair(transform);
                texts.push(Letters {
                    left: shift.0 + x - 0.8 * size,
                    right: shift.0 + x + 0.2 * size,
                    top: shift.1 + y - long / 2.0,
                    bottom: shift.1 + y + long / 2.0,
                    class: class.to_owned(),
                    text: plain,
                });
                continue;
            }
            let x = shift.0 + number(attribute(tag, "x").expect("x"));
            let y = shift.1 + number(attribute(tag, "y").expect("y"));
            let left = match class {
                "a" | "o" | "f" | "l" => x - long / 2.0,
                "r" => x - long,
                _ => x,
            };
            texts.push(Letters {
                left,
                right: left + long,
                top: y - 0.76 * size,
                bottom: y + 0.2 * size,
                class: class.to_owned(),
                text: plain,
            });
        } else if tag.starts_with("path ") && attribute(tag, "fill") == Some("none") {
            for part in attribute(tag, "d").expect("a path").split('M').skip(1) {
                let numbers: Vec<f64> = part
                    .split(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-'))
                    .filter(|piece| !piece.is_empty())
                    .map(number)
                    .collect();
                if let [x, y, width, height, _] = numbers.as_slice() {
                    let (x, y) = (x + shift.0, y + shift.1);
                    boxes.push([x, x + width, y, y + height]);
                }
            }
        }
    }
    (width, height, texts, boxes)
}

/// Nothing is cut, no text touches another, and no line between cells crosses one.
fn check_letters(name: &str, svg: &str) -> usize {
    let (width, height, texts, boxes) = parts(svg);
    let mut places: HashMap<(i64, i64), Vec<usize>> = HashMap::new();
    for (i, text) in texts.iter().enumerate() {
        assert!(
            text.left >= 0.0 && text.right <= width && text.top >= 0.0 && text.bottom <= height,
            "{name}: {} is cut by {width}x{height}",
            text.text
        );
        for x in (text.left / 64.0) as i64..=(text.right / 64.0) as i64 {
            for y in (text.top / 64.0) as i64..=(text.bottom / 64.0) as i64 {
                let near = places.entry((x, y)).or_default();
                for &other in near.iter() {
                    let other = &texts[other];
                    let apart = text.left >= other.right
                        || other.left >= text.right
                        || text.top >= other.bottom
                        || other.top >= text.bottom;
                    assert!(apart, "{name}: {} touches {}", text.text, other.text);
                }
                near.push(i);
            }
        }
    }
    for [left, right, top, bottom] in boxes {
        for x in [left, right] {
            for y in (top / 64.0) as i64..=(bottom / 64.0) as i64 {
                for &i in places.get(&((x / 64.0) as i64, y)).into_iter().flatten() {
                    let text = &texts[i];
                    // The numbers of sparse pictures stand on colours without lines.
                    let crossed = text.class != "c"
                        && text.left < x
                        && x < text.right
                        && text.top < bottom
                        && top < text.bottom;
                    assert!(!crossed, "{name}: an edge at {x} crosses {}", text.text);
                }
            }
        }
    }
    texts.len()
}

#[test]
fn letters_fit_on_tiles_of_every_size() {
    for n in [8_i64, 16, 32, 64, 128] {
        for m in [8, 32, 128] {
            let plain = format!("({m},{n}):({n},1)");
            let swizzled = format!("Sw<2,3,3> o ({m},{n}):({n},1)");
            let padded = format!("({m},{n}):({},1)", n + 8);
            let far = format!("({m},{n}):(-{},-7)", 123 * n);
            let rows = m.min(32);
            let narrow = format!("ld.32 @ ({rows},{}):({n},1)", 32 / rows);
            let halves = format!(
                "ld.128 @ ({},{}):(8,{n})",
                n.min(32) / 8,
                (m * 8 / n).clamp(1, 8)
            );
            for args in [
                vec![plain.as_str()],
                vec![&plain, "--banks"],
                vec![&swizzled, "--banks", "--elem", "f16"],
                vec![&far, "--banks"],
                vec![&padded, "--access", &narrow],
                vec![&swizzled, "--access", &halves, "--elem", "f16"],
                vec![&swizzled, "--access", &halves, "--elem", "f16", "--banks"],
            ] {
                let svg = file("--svg", &args);
                let texts = check_letters(&format!("{args:?}"), &svg);
                assert!(
                    texts as i64 >= m.min(n).min(64),
                    "{args:?} has {texts} texts"
                );
                if n <= 64 && args.contains(&"--access") {
                    // Lane and phase stand on every lane's block, together or one below the other.
                    let forms = ["lane 0, phase 0", ">L0 p0", ">L0<"];
                    let named = forms.iter().any(|form| svg.contains(form));
                    assert!(named, "{args:?} does not name lane 0");
                    assert!(svg.contains("phase 0, ") || svg.contains("p0"), "{args:?}");
                }
            }
        }
    }
}

#[test]
fn letters_fit_on_every_atom() {
    let message = json(&["--atom", "none"]).1["error"]["message"].to_string();
    let list = message.split("one of ").nth(1).expect("a list");
    let mut names: Vec<&str> = list
        .split([',', '"'])
        .map(str::trim)
        .filter(|name| !name.is_empty() && !name.contains("TYPE"))
        .collect();
    assert!(names.len() > 30, "{names:?}");
    names.extend([
        "wgmma.m64n8k16.f16",
        "wgmma.m64n64k8.tf32",
        "wgmma.m64n128k32.e4m3",
        "wgmma.m64n256k16.bf16",
    ]);
    for name in names {
        let svg = file("--svg", &["--atom", name]);
        check_letters(name, &svg);
        assert!(svg.contains("T0") || svg.contains("thread 0"), "{name}");
    }
}

#[test]
fn long_and_odd_layouts_fit_too() {
    for args in [
        vec!["1:0"],
        vec!["70:-3", "--banks"],
        vec!["(1,1):(0,0)", "--banks"],
        vec!["(3,5,7):(1,3,15)"],
        vec!["(4,4):(1000000000000000000,1)"],
        vec![
            "(((2,2),(2,2)),((2,2),(2,2))):(((1,2),(4,8)),((16,32),(64,128)))",
            "--banks",
        ],
        vec![
            "((2,2,2,2,2,2),(2,2,2,2,2,2)):((1,4,16,64,256,1024),(2,8,32,128,512,2048))",
            "--banks",
        ],
        vec![
            "(1000000,1000000):(1,1000000)",
            "--rows",
            "999990..1000000",
            "--cols",
            "500000..500010",
        ],
        vec!["(8,32):(32,1)", "--access", "ld.32 @ 32:0"],
        vec!["(8,32):(32,1)", "--access", "ld.8 @ 32:1"],
        vec!["(8,8):(8,1)", "--elem", "16", "--access", "st.64 @ 32:1"],
        vec![
            "(16,64):(64,1)",
            "--model",
            "amd-r700",
            "--access",
            "st.32 @ 32:1",
        ],
        vec![
            "(16,64):(64,1)",
            "--cols",
            "4..60",
            "--access",
            "ldmatrix.x2 @ 16:64",
        ],
    ] {
        check_letters(&format!("{args:?}"), &file("--svg", &args));
        assert!(!text_of(&args).is_empty());
        assert_eq!(json(&args).0, 0, "{args:?}");
    }
}

#[test]
fn pages_load_nothing_and_carry_their_data() {
    for args in [
        vec![
            "Sw<3,3,3> o (64,64):(64,1)",
            "--access",
            "ldmatrix.x4 @ (16,2):(64,8)",
        ],
        vec!["(8,8):(8,1)"],
        vec!["--atom", "mma.m16n8k16.f16"],
    ] {
        let page = file("--html", &args);
        for forbidden in ["https:", "src=", "href=", "url(", "@import", "fetch("] {
            assert!(!page.contains(forbidden), "{forbidden} in {args:?}");
        }
        let hosts = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!hosts.contains("http:"), "{args:?}");
        let open = "<script type=\"application/json\" id=\"data\">";
        let (head, rest) = page.split_once(open).expect("the data");
        let (data, _) = rest.split_once("</script>").expect("an end");
        let data: Value = serde_json::from_str(data).expect("JSON");
        let panels = data["panels"].as_array().expect("panels");
        assert_eq!(head.matches("<figure ").count(), panels.len());
        for panel in panels {
            let cells = panel["cells"]["offset"].as_array().expect("offsets").len();
            let count = |axis: &str| panel[axis]["count"].as_u64().expect("a count");
            assert_eq!(cells as u64, count("rows") * count("cols"));
        }
        let access = args.contains(&"--access");
        assert_eq!(page.contains("<select id=\"phase\""), access);
        assert_eq!(page.contains("name=\"panels\" value=\"before\""), access);
        // The drawings nest as XML must; the data of the head and the script is no XML.
        for svg in head.split("<svg ").skip(1) {
            let (svg, _) = svg.split_once("</svg>").expect("an end");
            tags(&format!("<svg {svg}</svg>"));
        }
    }
}

// The terminal.

#[test]
fn colours_are_for_terminals() {
    let plain = text_of(&["(4,8):(8,1)", "--banks"]);
    assert!(!plain.contains('\x1b'));
    let coloured = text_of(&["(4,8):(8,1)", "--banks", "--color", "always"]);
    assert!(coloured.contains("\x1b[48;5;"));
    // Without the escapes it is the same text.
    let mut stripped = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once('\x1b') {
        stripped.push_str(before);
        rest = after.split_once('m').expect("an end").1;
    }
    stripped.push_str(rest);
    assert_eq!(stripped, plain);
    assert!(plain.contains("3 │ 24 25 26 27 28 29 30 31"), "{plain}");
}

#[test]
fn what_is_left_out_is_said() {
    let text = text_of(&["(1000,1000):(1000,1)"]);
    assert!(
        text.contains("Clipped: rows 0..64 and columns 0..16 of 1000 × 1000"),
        "{text}"
    );
    assert!(text.lines().all(|line| line.chars().count() <= 160));
    let (_, value) = json(&["(1000,1000):(1000,1)"]);
    assert_eq!(value["panels"][0]["clipped"], true);
    assert_eq!(cells(&value["panels"][0]).len(), 128 * 128);
    let (_, value) = json(&[
        "(9223372036854775,2):(0,1)",
        "--rows",
        "9223372036854000..9223372036854010",
    ]);
    assert_eq!(cells(&value["panels"][0]).len(), 20);
    let (_, value) = json(&[
        "(64,64):(64,1)",
        "--rows",
        "0..4",
        "--access",
        "ld.32 @ 32:64",
    ]);
    assert!(
        value["notes"]
            .to_string()
            .contains("28 lanes touch elements outside")
    );
}

// Errors.

/// Exit code, code, and the part of the text that is underlined.
fn refused<'a>(args: &[&'a str], text: &'a str) -> (i32, String, &'a str) {
    let (exit, value) = json(args);
    let error = &value["error"];
    assert!(
        error["message"].as_str().is_some_and(|m| !m.is_empty()),
        "{args:?} is not refused"
    );
    let end = |i: usize| error["span"][i].as_u64().map(|at| at as usize);
    let part = end(0).zip(end(1)).map_or("", |(a, b)| &text[a..b]);
    (
        exit,
        error["code"].as_str().unwrap_or_default().to_owned(),
        part,
    )
}

#[test]
fn errors_underline_what_is_wrong() {
    let tile = "(16,64):(64,1)";
    let with = |access: &'static str| refused(&[tile, "--access", access], access);
    let layout = |text: &'static str| refused(&[text], text);
    let option = |name: &'static str, text: &'static str| refused(&[tile, name, text], text);
    let atom = |name: &'static str| refused(&["--atom", name], name);
    let expect = |found: (i32, String, &str), exit: i32, code: &str, part: &str| {
        assert_eq!((found.0, found.1.as_str(), found.2), (exit, code, part));
    };
    expect(layout("(4,x):(1,4)"), 2, "syntax", "x");
    expect(layout("(4,8):(1,4) 7"), 2, "trailing_text", "7");
    expect(layout(""), 2, "syntax", "");
    expect(layout("(4,0):(1,4)"), 2, "invalid_extent", "(4,0):(1,4)");
    expect(
        layout("99999999999999999999:1"),
        2,
        "integer_too_large",
        "99999999999999999999",
    );
    assert_eq!(layout("Sw<3,3,0> o 8:1").0, 2);
    assert_eq!(layout("(9223372036854775807,2):(1,1)").0, 2);
    expect(with("ldmatrix.x4 (16,2):(64,8)"), 2, "syntax", "");
    expect(
        with("ldmatrix.x5 @ (16,2):(64,8)"),
        2,
        "unknown_access",
        "ldmatrix.x5",
    );
    expect(with("ld.128 @ (16,2:(64,8)"), 2, "syntax", ":");
    expect(with("ldmatrix.x4 @ 16:64"), 1, "wrong_lane_count", "16:64");
    expect(with("ld.32 @ 64:1"), 1, "wrong_lane_count", "64:1");
    expect(with("ld.32 @ 32:64"), 1, "outside_tile", "32:64");
    expect(with("ld.32 @ 32:-1"), 1, "outside_tile", "32:-1");
    expect(
        with("st.32 @ (16,2):(1,0)"),
        1,
        "duplicate_lanes",
        "(16,2):(1,0)",
    );
    expect(with("ld.128 @ 32:1"), 1, "misaligned", "32:1");
    expect(with("ffma @ 3:1"), 1, "unsupported_access", "3:1");
    expect(option("--elem", "f17"), 2, "bad_element", "f17");
    expect(
        option("--model", "maxwell-registers"),
        2,
        "unknown_model",
        "maxwell-registers",
    );
    expect(option("--rows", "0..17"), 2, "bad_window", "0..17");
    expect(
        atom("mma.m16n8k17.f16"),
        2,
        "unknown_atom",
        "mma.m16n8k17.f16",
    );
    expect(
        atom("wgmma.m64n12k16.f16"),
        2,
        "not_divisible",
        "wgmma.m64n12k16.f16",
    );
    expect(
        refused(&["--atom", "ldmatrix.x1", "--operand", "A"], "A"),
        2,
        "unknown_operand",
        "A",
    );
    expect(
        refused(&["--atom", "wgmma.m64n8k16.f16", "--operand", "B"], ""),
        1,
        "no_fragment",
        "",
    );
    expect(
        refused(
            &[
                "(2,2):(4611686018427387900,1)",
                "--elem",
                "16",
                "--access",
                "ld.8 @ 2:2",
            ],
            "ld.8 @ 2:2",
        ),
        1,
        "overflow",
        "2:2",
    );
    // An access that the memory lacks.
    expect(
        refused(
            &[
                tile,
                "--model",
                "amd-gcn",
                "--access",
                "ldmatrix.x4 @ (16,2):(64,8)",
            ],
            "ldmatrix.x4 @ (16,2):(64,8)",
        ),
        1,
        "unsupported_access",
        "(16,2):(64,8)",
    );
    // Neither a layout nor an atom, or both.
    assert_eq!(refused(&[], "").0, 2);
    assert_eq!(refused(&[tile, "--atom", "ldmatrix.x4"], "").0, 2);
    assert_eq!(refused(&["--atom", "ldmatrix.x4", "--banks"], "").0, 2);
    assert_eq!(refused(&[tile, "--operand", "A"], "").0, 2);
    // For people, the span is underlined.
    let output = show(&["(4,x):(1,4)"]);
    assert!(String::from_utf8_lossy(&output.stderr).ends_with("  | (4,x):(1,4)\n  |    ^\n"));
}

#[test]
fn files_are_whole_or_absent() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("absent/tile.svg").display().to_string();
    assert_eq!(refused(&["8:1", "--svg", &path], "").0, 1);
    let one = folder.path().join("one").display().to_string();
    assert_eq!(refused(&["8:1", "--svg", &one, "--html", &one], "").0, 2);
    assert_eq!(std::fs::read_dir(folder.path()).expect("listed").count(), 0);
    let (exit, value) = json(&["8:1", "--svg", &one]);
    assert_eq!((exit, value["svg"].as_str()), (0, Some(one.as_str())));
    assert!(folder.path().join("one").exists());
}

// The page of the book.

#[test]
fn the_books_pictures_are_what_its_commands_draw() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let page = std::fs::read_to_string(format!("{root}/docs/show.md")).expect("the page");
    let mut drawn = Vec::new();
    for line in page.lines() {
        let Some(command) = line.strip_prefix("tilewright show ") else {
            continue;
        };
        // Words, or texts in quotes.
        let mut words: Vec<String> = Vec::new();
        for (i, part) in command.split('\'').enumerate() {
            if i % 2 == 1 {
                words.push(part.to_owned());
            } else {
                words.extend(part.split_whitespace().map(str::to_owned));
            }
        }
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(folder.path().join("docs/pictures")).expect("created");
        let args: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = show_in(folder.path(), &args);
        assert_eq!(output.status.code(), Some(0), "{line}");
        if let Some(path) = words.iter().find(|word| word.contains(".svg")) {
            let made = std::fs::read_to_string(folder.path().join(path)).expect("made");
            let kept = std::fs::read_to_string(format!("{root}/{path}")).expect("kept");
            assert!(
                made == kept,
                "{path} is not what `{line}` draws: run it again"
            );
            assert!(
                page.contains(&format!("({})", path.trim_start_matches("docs/"))),
                "{path} is shown"
            );
            drawn.push(path.clone());
        }
    }
    let kept = std::fs::read_dir(format!("{root}/docs/pictures")).expect("listed");
    assert_eq!(drawn.len(), kept.count(), "every picture has its command");
}
