//! The structure of pictures.
//!
//! Nothing here knows how pictures are made: the SVG is read back, its texts are measured with widths on the safe side, and none may be
//! cut, touch another or be crossed by a line between cells.

use std::collections::HashMap;

use serde_json::Value;

use crate::{file, json, text_of};

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
    let list = text_of(&["--atom", "list"]);
    let (_, listed) = json(&["--atom", "list"]);
    assert_eq!(
        listed["atoms"].as_array().map(Vec::len),
        Some(list.lines().count())
    );
    // Of the many mixes that are drawn alike, one in ten; a thread of tensor memory has as many registers as the name says.
    let alike = |name: &str| {
        ["f8f6f4", "mma.sp.", "tcgen05.ld."]
            .iter()
            .any(|part| name.contains(part))
    };
    let mut mixes = 0;
    let mut names: Vec<&str> = list
        .lines()
        .filter(|name| {
            mixes += usize::from(alike(name));
            !alike(name) || mixes % 10 == 0
        })
        .collect();
    assert!(names.len() > 150, "{names:?}");
    names.extend([
        "wgmma.m64n8k16.f16",
        "wgmma.m64n64k8.tf32",
        "wgmma.m64n128k32.e4m3",
        "wgmma.m64n256k16.bf16",
        "tcgen05.mma.m64n16",
        "tcgen05.mma.m256n64.cta2",
        "tcgen05.mma.m128n32.cta2",
        "tcgen05.mma.m128n32.cta2.sp",
        "tcgen05.mma.m32n64.ws",
    ]);
    for name in names {
        let svg = file("--svg", &["--atom", name]);
        check_letters(name, &svg);
        let first = ["T0", "thread 0", "m0", ">0,0<"];
        assert!(first.iter().any(|text| svg.contains(text)), "{name}");
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
