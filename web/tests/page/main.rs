//! The page in a browser: what a newcomer types, clicks and sends to a colleague is answered, and the console stays empty.
//!
//! `cargo xtask page` builds the page and `cargo xtask test` sees to the browser. `TILEWRIGHT_NO_PAGE=1` leaves these tests out, which each of
//! them says.

mod browser;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use browser::{Browser, page};
use serde_json::json;

/// Drives the page, if it is there to be driven, and looks at the console in the end.
fn with_page(test: impl FnOnce(&Browser, &PathBuf)) {
    let Some(page) = page() else {
        return;
    };
    let browser = Browser::start();
    test(&browser, &page);
    assert_eq!(browser.console_errors(), Vec::<String>::new());
}

/// The text of the pictures of a view.
fn pictures(browser: &Browser, view: &str) -> String {
    browser.text(&format!(
        "return [...document.querySelectorAll('#{view} .picture')].map(p => p.shadowRoot.textContent).join('\\n')"
    ))
}

/// Waits until something holds.
fn eventually(holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(20), "never true");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn output(browser: &Browser, view: &str, name: &str) -> String {
    browser.text(&format!(
        "return document.querySelector('#{view} [data-out={name}]').textContent"
    ))
}

#[test]
fn the_page_is_one_file_whose_first_picture_needs_no_kernels() {
    with_page(|browser, built| {
        let bytes = std::fs::metadata(built).expect("the page").len();
        eprintln!("{bytes} bytes");
        assert!(bytes <= 2_000_000, "{bytes}");
        // From a folder of its own, as somebody would keep it.
        let folder = tempfile::tempdir().expect("a folder");
        let page = &folder.path().join("layouts.html");
        std::fs::copy(built, page).expect("copied");

        // Other work on the machine only adds time, so that one opening below the bound settles it.
        let mut fastest = u64::MAX;
        for _ in 0..20 {
            browser.open(page, "");
            let at = browser.run("return Number(document.documentElement.dataset.picture)");
            fastest = fastest.min(at.as_u64().expect("a picture"));
            if fastest < 500 {
                break;
            }
        }
        eprintln!("first picture after {fastest} ms");
        assert!(fastest < 500, "{fastest} ms");

        browser.run("document.querySelector('#tab-gemm').click()");
        browser.wait("return document.querySelector('#gemm [data-out=status]').textContent.includes('proven')");
        // The list of plans comes with the kernels, and keeps what the address chose.
        assert!(
            browser
                .run("return document.querySelectorAll('#gemm [name=plan] option').length")
                .as_u64()
                > Some(50)
        );
        assert_eq!(
            browser.text("return document.querySelector('#gemm [name=plan]').value"),
            "mma-f16-64x64x32"
        );
    });
}

#[test]
fn a_typed_layout_is_drawn_with_its_properties_and_code() {
    with_page(|browser, page| {
        browser.open(page, "");
        // What the page begins with: an access to a swizzled tile, before and after.
        let first = pictures(browser, "layout");
        assert!(
            first.contains("32 wavefronts, ideal 4") && first.contains("4 wavefronts, ideal 4")
        );
        browser.picture("layout");
        browser.type_into("#layout [name=access]", " ");
        browser.type_into("#layout [name=layout]", "(4,(2,2)):(2,(1,8)) o 4:2");
        browser.wait("return document.querySelector('#layout [data-out=properties]').textContent.includes('cosize')");
        browser.wait("return document.querySelector('#layout .picture').shadowRoot.textContent.includes('(2,2):(4,1)')");
        let properties = output(browser, "layout", "properties");
        assert!(properties.contains("injectivetrue"), "{properties}");
        assert!(output(browser, "layout", "code").contains("__host__ __device__"));
        for (target, word) in [
            ("rust", "pub const fn"),
            ("ptx", "%offset"),
            ("opencl", "uint offset("),
        ] {
            browser.run(&format!(
                "const s = document.querySelector('#layout [name=target]'); s.value = '{target}'; s.dispatchEvent(new Event('input', {{bubbles: true}}))"
            ));
            browser.wait(&format!(
                "return document.querySelector('#layout [data-out=code]').textContent.includes('{word}')"
            ));
        }
        // An expression that is no layout is its value.
        browser.type_into("#layout [name=layout]", "cosize((4,8):(16,1))");
        browser
            .wait("return document.querySelector('#layout [data-out=text]').textContent === '56'");
    });
}

#[test]
fn a_refusal_names_the_place_and_goes_away() {
    with_page(|browser, page| {
        browser.open(page, "");
        browser.type_into("#layout [name=layout]", "(4,8):(1,y");
        browser.wait("return !document.querySelector('#layout .error').hidden");
        let error = browser.text("return document.querySelector('#layout .error').textContent");
        assert!(
            error.contains("| (4,8):(1,y\n  | ") && error.trim_end().ends_with('^'),
            "{error}"
        );
        browser.picture("refusal");
        browser.type_into("#layout [name=access]", "ldmatrix.x9 @ 32:1");
        browser.type_into("#layout [name=layout]", "(16,64):(64,1)");
        browser.wait(
            "return document.querySelector('#layout .error').textContent.includes('^^^^^^^^^^^')",
        );
        browser.type_into("#layout [name=access]", "ldmatrix.x4 @ (16,2):(64,8)");
        browser.wait("return document.querySelector('#layout .error').hidden");
        assert!(pictures(browser, "layout").contains("32 wavefronts"));
    });
}

#[test]
fn a_link_shows_what_its_sender_saw() {
    with_page(|browser, page| {
        browser.open(page, "");
        browser.type_into("#layout [name=layout]", "Sw<2,4,3> o (8,32):(32,1)");
        browser.type_into("#layout [name=access]", " ");
        browser.run("document.querySelector('#layout [name=banks]').click()");
        browser.wait("return location.hash.includes('banks=1') && document.querySelector('#layout .picture')?.shadowRoot.textContent.includes('Sw<2,4,3>')");
        let address = browser.text("return location.hash");
        let colleague = Browser::start();
        colleague.open(page, &address);
        // A picture may follow its address.
        eventually(|| pictures(&colleague, "layout") == pictures(browser, "layout"));
        assert_eq!(
            colleague.run("return document.querySelector('#layout [name=banks]').checked"),
            json!(true)
        );
        // An example is a link; the way back is the browser's.
        browser.run("document.querySelectorAll('#layout .examples a')[1].click()");
        browser.wait(
            "return document.querySelector('#layout [name=layout]').value === '(32,32):(33,1)'",
        );
        browser.run("history.back()");
        browser.wait(
            "return document.querySelector('#layout [name=layout]').value.startsWith('Sw<2,4,3>')",
        );
        // An address that somebody wrote by hand is answered, not trusted.
        browser.open(
            page,
            "#view=layout&layout=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E&elem=f17",
        );
        browser.wait("return !document.querySelector('#layout .error').hidden");
        browser.open(page, "#view=nothing");
        eventually(|| pictures(browser, "layout").contains("Sw<3,3,3>"));
    });
}

#[test]
fn accesses_are_scored_before_and_after_the_derived_layout() {
    with_page(|browser, page| {
        browser.open(page, "#view=derive");
        browser.wait("return document.querySelectorAll('#derive .picture').length === 2");
        assert_eq!(
            output(browser, "derive", "text"),
            "Sw<3,3,3> o (64,64):(64,1)"
        );
        assert!(output(browser, "derive", "summary").contains("lower bound"));
        let drawn = pictures(browser, "derive");
        assert!(
            drawn.contains("32 wavefronts, ideal 4") && drawn.contains("phase 0"),
            "{drawn}"
        );
        browser.picture("derive");
        // The phase that the reader picks is the one that is shown.
        browser.run("const s = document.querySelectorAll('#derive .picture')[1].shadowRoot.getElementById('phase'); s.value = '1'; s.dispatchEvent(new Event('change'))");
        browser.wait("return document.querySelectorAll('#derive .picture')[1].shadowRoot.querySelectorAll('li[data-on]').length === 2");
        browser.type_into("#derive [name=tile]", "64");
        browser.wait(
            "return document.querySelector('#derive .error').textContent.includes('ROWSxCOLUMNS')",
        );
    });
}

#[test]
fn an_instruction_is_picked_by_name() {
    with_page(|browser, page| {
        browser.open(page, "#view=atom");
        let drawn = pictures(browser, "atom");
        assert!(drawn.contains("T0") && drawn.contains("T31"));
        assert!(
            browser
                .run("return document.querySelectorAll('#atoms option').length")
                .as_u64()
                > Some(50)
        );
        browser.type_into("#atom [name=name]", "ldmatrix.x4.trans");
        browser.wait("return document.querySelector('#atom .picture').shadowRoot.textContent.includes('ldmatrix.x4.trans')");
        browser.picture("atom");
        browser.type_into("#atom [name=name]", "mma.m16n8k17");
        browser.wait("return !document.querySelector('#atom .error').hidden");
    });
}

#[test]
fn an_element_and_a_value_of_a_thread_are_found() {
    with_page(|browser, page| {
        browser.open(page, "#view=atom&operand=C&at=9%2C+3");
        let found = "return document.querySelector('#atom [data-out=at]').textContent";
        browser.wait(&format!("{found}.includes('thread 5, value 3')"));
        let marked = "document.querySelector('#atom .picture').shadowRoot.querySelector('.marked').getAttribute('d').split('M').length - 1";
        assert_eq!(browser.run(&format!("return {marked}")), json!(1));
        browser.type_into("#atom [name=at]", "T5 V3");
        browser.wait(&format!("{found}.includes('(9, 3)')"));
        browser.type_into("#atom [name=at]", "t5");
        browser.wait(&format!("{found}.includes('(1, 2) V0; (1, 3) V1')"));
        assert_eq!(browser.run(&format!("return {marked}")), json!(4));
        browser.picture("where");
        browser.type_into("#atom [name=at]", "T5 V9");
        browser.wait(&format!("{found}.includes('nowhere')"));
        browser.type_into("#atom [name=at]", "<b>");
        browser.wait(&format!("{found}.includes('is no thread and value')"));
        // A cell asks by the keyboard, too.
        browser.run(
            "document.querySelector('#atom .picture').shadowRoot.querySelector('svg').focus()",
        );
        for key in ['\u{e014}', '\u{e015}', '\u{e007}'] {
            browser.press(key);
        }
        browser.wait("return /^\\d+, \\d+$/.test(document.querySelector('#atom [name=at]').value) && location.hash.includes('at=')");
        browser.wait(&format!("{found}.includes('thread')"));
        // Fragments of wgmma and of tcgen05 have names in the list.
        for (name, word) in [
            ("wgmma.m64n16k16.bf16", "T127"),
            ("tcgen05.ld.32x32b.x8", "T31"),
        ] {
            browser.open(page, &format!("#view=atom&name={name}"));
            browser.wait(&format!("return document.querySelector('#atom .picture')?.shadowRoot.textContent.includes('{word}')"));
        }
    });
}

#[test]
fn two_layouts_are_compared_element_by_element() {
    with_page(|browser, page| {
        browser.open(page, "#view=compare");
        let text = "return document.querySelector('#compare [data-out=text]').textContent";
        browser.wait(&format!(
            "{text}.includes('64 of 128 elements differ; the first at (1, 0): offset 24 and 16')"
        ));
        browser.picture("compare");
        browser.type_into(
            "#compare [name=other]",
            "composition(Swizzle<1,3,1>{}, Layout<Shape<_8,_16>,Stride<_16,_1>>{})",
        );
        browser.wait(&format!("{text}.includes('All 128 elements')"));
        browser.type_into("#compare [name=other]", "(4,16):(16,1)");
        browser.wait(&format!("{text}.includes('8x16 and 4x16')"));
        browser.type_into("#compare [name=other]", "size(4:1)");
        browser.wait(
            "return document.querySelector('#compare .error').textContent.includes('is no layout')",
        );
    });
}

#[test]
fn a_plan_is_proven_and_runs_on_the_emulator() {
    with_page(|browser, page| {
        browser.open(page, "#view=gemm&m=40&n=48&k=40");
        browser.wait("return document.querySelector('#gemm [data-out=status]').textContent.includes('proven')");
        assert!(output(browser, "gemm", "ptx").contains(".visible .entry"));
        assert!(output(browser, "gemm", "proofs").len() > 500);
        browser.run("document.querySelector('#gemm button[type=submit]').click()");
        browser.wait("return /passed|FAILED/.test(document.querySelector('#gemm [data-out=status]').textContent)");
        let status = output(browser, "gemm", "status");
        assert!(
            status.starts_with("passed") && status.contains("0 findings"),
            "{status}"
        );
        // Counted beside proven, for every shared access.
        let rows = browser.run("return [...document.querySelectorAll('#gemm [data-out=accesses] tbody tr')].map(r => [r.cells[2].textContent, r.cells[4].textContent])");
        let rows = rows.as_array().expect("rows");
        assert!(rows.len() >= 2, "{rows:?}");
        for row in rows {
            assert_eq!(row[0], row[1], "{rows:?}");
        }
        browser.picture("gemm");
        // A run can be stopped, and the page asks on.
        browser.type_into("#gemm [name=m]", "1024");
        browser.wait("return document.querySelector('#gemm [data-out=status]').textContent.includes('proven')");
        browser.run("document.querySelector('#gemm button[type=submit]').click()");
        browser.run("document.querySelector('#gemm [name=stop]').click()");
        browser.wait(
            "return document.querySelector('#gemm [data-out=status]').textContent === 'stopped'",
        );
        browser.type_into("#gemm [name=m]", "0");
        browser.wait("return document.querySelector('#gemm [data-out=status]').textContent.includes('proven')");
        browser.run("document.querySelector('#gemm button[type=submit]').click()");
        browser.wait(
            "return document.querySelector('#gemm .error').textContent.includes('from 1 to 1024')",
        );
    });
}

#[test]
fn the_keyboard_is_enough_and_a_telephone_is_wide_enough() {
    with_page(|browser, page| {
        browser.open(page, "");
        browser.run("document.querySelector('#tab-layout').focus()");
        browser.press('\u{e014}');
        assert_eq!(
            browser.text("return document.activeElement.id"),
            "tab-compare"
        );
        assert_eq!(
            browser.run("return document.querySelector('#compare').hidden"),
            json!(false)
        );
        browser.press('\u{e012}');
        // Arrow keys move over the cells of a picture, which says what each is.
        browser.run(
            "document.querySelector('#layout .picture').shadowRoot.querySelector('svg').focus()",
        );
        browser.press('\u{e014}');
        browser.press('\u{e015}');
        let tip = "document.querySelector('#layout .picture').shadowRoot.getElementById('tip')";
        browser.wait(&format!("return !{tip}.hidden"));
        assert!(
            browser
                .text(&format!("return {tip}.textContent"))
                .contains("bank")
        );

        browser.run("document.getElementById('theme').click()");
        assert_eq!(
            browser.text("return document.documentElement.dataset.theme"),
            "dark"
        );
        browser.width(400);
        for view in ["layout", "compare", "derive", "atom", "gemm"] {
            browser.open(page, &format!("#view={view}"));
            browser.wait(&format!("return !document.querySelector('#{view}').hidden"));
            browser.wait(&format!(
                "return document.querySelectorAll('#{view} .picture, #{view} tbody tr').length > 0"
            ));
            let width = browser.run("return document.documentElement.scrollWidth");
            assert_eq!(width, json!(400), "{view} is wider than the screen");
            assert_eq!(
                browser.text("return document.documentElement.dataset.theme"),
                "dark"
            );
            browser.picture(&format!("narrow-{view}"));
        }
    });
}
