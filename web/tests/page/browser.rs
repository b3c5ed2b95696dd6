//! A browser without a window, driven through `ChromeDriver`'s HTTP interface (W3C `WebDriver`): as much of it as the tests of the page need.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long the page may take to do what a test waits for: the emulator runs on a machine that others use, too.
const PATIENCE: Duration = Duration::from_mins(1);

/// A browser with the page open.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    /// Its settings, removed with it.
    profile: tempfile::TempDir,
}

/// The page, which `cargo xtask page` builds; none where the tests of it are left out.
pub(crate) fn page() -> Option<PathBuf> {
    if std::env::var_os("TILEWRIGHT_NO_PAGE").is_some_and(|v| v == "1") {
        eprintln!("NOT RUN: the page in the browser is left out with TILEWRIGHT_NO_PAGE=1");
        return None;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/page/index.html");
    let path = path.canonicalize().unwrap_or_else(|error| {
        panic!(
            "{}: {error}; `cargo xtask page` builds it, TILEWRIGHT_NO_PAGE=1 leaves these tests out",
            path.display()
        )
    });
    Some(path)
}

impl Browser {
    /// Starts one.
    pub(crate) fn start() -> Self {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver starts: install chromium-driver, or set TILEWRIGHT_NO_PAGE=1");
        let mut lines = BufReader::new(driver.stdout.take().expect("a pipe")).lines();
        let port = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| {
                let (_, port) = line.split_once("successfully on port ")?;
                port.trim_end_matches('.').parse().ok()
            })
            .expect("chromedriver says its port");
        // What it says later must not fill the pipe.
        std::thread::spawn(move || lines.map_while(Result::ok).count());
        let profile = tempfile::tempdir().expect("a folder");
        let mut browser = Self {
            driver,
            port,
            session: String::new(),
            profile,
        };
        let folder = format!("--user-data-dir={}", browser.profile.path().display());
        let options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--window-size=1300,1000",
            &folder,
        ];
        let session = browser.send(
            "POST",
            "/session",
            &json!({"capabilities": {"alwaysMatch": {
                "goog:chromeOptions": {"args": options},
                "goog:loggingPrefs": {"browser": "ALL"},
            }}}),
        );
        let id = session["sessionId"].as_str().expect("a session");
        browser.session = format!("/session/{id}");
        browser
    }

    /// Opens the page in the state that the address names, and waits until it answers.
    pub(crate) fn open(&self, page: &Path, state: &str) {
        let url = format!("file://{}{state}", page.display());
        // An address that differs in its state alone would not load the page anew.
        self.command("url", &json!({"url": "about:blank"}));
        self.command("url", &json!({"url": url}));
        self.wait("return 'ready' in document.documentElement.dataset");
    }

    /// What a script returns.
    pub(crate) fn run(&self, script: &str) -> Value {
        self.command("execute/sync", &json!({"script": script, "args": []}))
    }

    /// The text that a script returns.
    pub(crate) fn text(&self, script: &str) -> String {
        self.run(script).as_str().unwrap_or_default().to_owned()
    }

    /// Waits until a script returns something true.
    pub(crate) fn wait(&self, script: &str) {
        let started = Instant::now();
        while self.run(script) != json!(true) {
            assert!(
                started.elapsed() < PATIENCE,
                "never true: {script}\n{}",
                self.text("return document.body.innerText")
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Types a text into the field that a selector names, in place of what is in it.
    pub(crate) fn type_into(&self, selector: &str, text: &str) {
        let found = self.command(
            "element",
            &json!({"using": "css selector", "value": selector}),
        );
        let id = found
            .as_object()
            .and_then(|o| o.values().next())
            .and_then(Value::as_str)
            .unwrap_or_else(|| panic!("no {selector}: {found}"));
        // Control and A, then the text over what is selected.
        let keys = format!("\u{e009}a\u{e000}{text}");
        self.command(&format!("element/{id}/value"), &json!({"text": keys}));
    }

    /// Presses a key where the focus is.
    pub(crate) fn press(&self, key: char) {
        let actions = [
            json!({"type": "keyDown", "value": key.to_string()}),
            json!({"type": "keyUp", "value": key.to_string()}),
        ];
        self.command(
            "actions",
            &json!({"actions": [{"type": "key", "id": "keyboard", "actions": actions}]}),
        );
    }

    /// Makes the page as wide as a telephone.
    pub(crate) fn width(&self, pixels: u32) {
        self.command(
            "goog/cdp/execute",
            &json!({"cmd": "Emulation.setDeviceMetricsOverride", "params": {
                "width": pixels, "height": 900, "deviceScaleFactor": 1, "mobile": true,
            }}),
        );
    }

    /// What the page wrote to the console as errors, and what it could not load.
    pub(crate) fn console_errors(&self) -> Vec<String> {
        let log = self.command("se/log", &json!({"type": "browser"}));
        log.as_array()
            .into_iter()
            .flatten()
            .filter(|entry| entry["level"] == "SEVERE" || entry["level"] == "WARNING")
            .map(|entry| entry["message"].to_string())
            .collect()
    }

    /// Keeps a picture of the page in the folder that `TILEWRIGHT_SCREENSHOTS` names, for people to look at.
    pub(crate) fn picture(&self, name: &str) {
        let Some(folder) = std::env::var_os("TILEWRIGHT_SCREENSHOTS") else {
            return;
        };
        let shot = self.send("GET", &format!("{}/screenshot", self.session), &Value::Null);
        let path = Path::new(&folder).join(format!("{name}.png.base64"));
        std::fs::write(path, shot.as_str().unwrap_or_default()).expect("written");
    }

    fn command(&self, name: &str, body: &Value) -> Value {
        self.send("POST", &format!("{}/{name}", self.session), body)
    }

    /// One request, one answer: its `value`.
    fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let mut answer = self
            .exchange(method, path, body)
            .unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        let value = answer["value"].take();
        assert!(value["error"].is_null(), "{method} {path}: {value}");
        value
    }

    /// A request and its answer over HTTP. `ChromeDriver` leaves the connection open, so that the answer ends where its header says.
    fn exchange(&self, method: &str, path: &str, body: &Value) -> std::io::Result<Value> {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(request.as_bytes())?;
        let mut answer = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            answer.read_line(&mut line)?;
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(number) = line.strip_prefix("content-length:") {
                length = number.trim().parse().map_err(std::io::Error::other)?;
            }
        }
        let mut text = vec![0; length];
        answer.read_exact(&mut text)?;
        Ok(serde_json::from_slice(&text)?)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser ends with its session; a failed test must not leave one behind.
        if !self.session.is_empty() {
            let _ = self.exchange("DELETE", &self.session, &Value::Null);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
