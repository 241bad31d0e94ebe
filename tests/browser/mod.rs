//! Chromium, driven through its DevTools protocol (JSON over a WebSocket).

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

/// How long the browser may take for anything.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running browser.
pub(crate) struct Browser {
    child: Child,
    address: String,
    _profile: tempfile::TempDir,
}

/// How a page is looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) phone: bool,
    pub(crate) dark: bool,
}

/// A tab. Nothing but files can be loaded in it.
pub(crate) struct Tab {
    socket: WebSocket<TcpStream>,
    session: Option<String>,
    next: u64,
    events: Vec<Value>,
}

/// `ULPIAN_CHROMIUM`, or the first Chromium on `PATH`.
pub(crate) fn find() -> PathBuf {
    let on_path = || {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let names = ["chromium", "chromium-browser", "google-chrome"];
        std::env::split_paths(&path).flat_map(|d| names.map(|n| d.join(n))).find(|file| file.is_file())
    };
    let found = std::env::var_os("ULPIAN_CHROMIUM").map(PathBuf::from).or_else(on_path);
    found.expect("no Chromium: install it (Debian: apt-get install chromium), or name one in ULPIAN_CHROMIUM")
}

impl Browser {
    pub(crate) fn start() -> Browser {
        let profile = tempfile::tempdir().expect("a folder for the profile");
        // The sandbox does not work for root; the pages are ours.
        let child = Command::new(find())
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args(["--no-first-run", "--remote-debugging-port=0"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("Chromium starts");
        let mut browser = Browser { child, address: String::new(), _profile: profile };
        let begun = Instant::now();
        let file = browser._profile.path().join("DevToolsActivePort");
        while browser.address.is_empty() {
            assert!(begun.elapsed() < PATIENCE, "Chromium did not open its DevTools port");
            std::thread::sleep(Duration::from_millis(50));
            // The port, and below it the path of the browser's own socket.
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            if let Some((port, path)) = text.split_once('\n') {
                browser.address = format!("ws://127.0.0.1:{port}{}", path.trim());
            }
        }
        browser
    }

    /// Opens a file, perhaps with a fragment, and waits until it is loaded.
    pub(crate) fn open(&self, file: &Path, fragment: &str, screen: Screen) -> Tab {
        let host = self.address.trim_start_matches("ws://").split('/').next().expect("an address");
        let stream = TcpStream::connect(host).expect("Chromium listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout is set");
        let (socket, _) = tungstenite::client(self.address.as_str(), stream).expect("Chromium answers");
        let mut tab = Tab { socket, session: None, next: 0, events: Vec::new() };
        let target = tab.call("Target.createTarget", json!({"url": "about:blank"}))["targetId"].clone();
        let attached = tab.call("Target.attachToTarget", json!({"targetId": target, "flatten": true}));
        tab.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            tab.call(&format!("{domain}.enable"), json!({}));
        }
        let Screen { width, height, phone, dark } = screen;
        tab.call(
            "Emulation.setDeviceMetricsOverride",
            json!({"width": width, "height": height, "deviceScaleFactor": if phone { 3 } else { 1 }, "mobile": phone}),
        );
        tab.call("Emulation.setTouchEmulationEnabled", json!({"enabled": phone}));
        let scheme = if dark { "dark" } else { "light" };
        tab.call(
            "Emulation.setEmulatedMedia",
            json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]}),
        );
        let file = file.canonicalize().expect("the page is there");
        tab.call("Page.navigate", json!({"url": format!("file://{}{fragment}", file.display())}));
        tab.wait_for("Page.loadEventFired");
        tab
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Closed by its own command, it ends its children too.
        if let Some(host) = self.address.trim_start_matches("ws://").split('/').next()
            && let Ok(stream) = TcpStream::connect(host)
            && let Ok((socket, _)) = tungstenite::client(self.address.as_str(), stream)
        {
            let mut tab = Tab { socket, session: None, next: 0, events: Vec::new() };
            let close = json!({"id": 1, "method": "Browser.close"});
            let _ = tab.socket.send(Message::text(close.to_string()));
            let _ = tab.socket.read();
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Tab {
    /// Calls a method of the protocol and returns its result.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        let mut request = json!({"id": id, "method": method, "params": params});
        if let Some(session) = &self.session {
            request["sessionId"] = json!(session);
        }
        self.socket.send(Message::text(request.to_string())).expect("Chromium listens");
        loop {
            let message = self.read();
            if message["id"] == id {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    /// The value of an expression in the page; a promise is waited for.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", asked);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    /// Clicks in the middle of the element, as a mouse does.
    pub(crate) fn click(&mut self, selector: &str) {
        let middle = self.value(&format!(
            "(() => {{ const e = document.querySelector({}); e.scrollIntoView({{block: 'center'}});
             const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()",
            json!(selector)
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            let event =
                json!({"type": kind, "x": middle[0], "y": middle[1], "button": "left", "clickCount": 1});
            self.call("Input.dispatchMouseEvent", event);
        }
        // What the click set in motion has been done when a later task runs.
        self.value("new Promise((done) => setTimeout(done, 50))");
    }

    /// What the page complained about: exceptions, errors and warnings in the console or the log.
    pub(crate) fn complaints(&mut self) -> Vec<String> {
        self.value("0");
        let complains = |event: &&Value| match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Runtime.consoleAPICalled") => {
                ["error", "warning", "assert"].iter().any(|kind| event["params"]["type"] == *kind)
            }
            Some("Log.entryAdded") => event["params"]["entry"]["level"] != "verbose",
            _ => false,
        };
        self.events.iter().filter(complains).map(|event| event["params"].to_string()).collect()
    }

    /// The addresses of everything that was loaded.
    pub(crate) fn loaded(&self) -> Vec<String> {
        let request = |event: &&Value| event["method"] == "Network.requestWillBeSent";
        let address = |event: &Value| event["params"]["request"]["url"].as_str().map(str::to_owned);
        self.events.iter().filter(request).filter_map(address).collect()
    }

    fn wait_for(&mut self, method: &str) {
        let begun = Instant::now();
        while !self.events.iter().any(|event| event["method"] == method) {
            assert!(begun.elapsed() < PATIENCE, "no {method}");
            let message = self.read();
            self.events.push(message);
        }
    }

    fn read(&mut self) -> Value {
        loop {
            let message = self.socket.read().expect("Chromium answers in time");
            if let Ok(text) = message.to_text()
                && !text.is_empty()
            {
                return serde_json::from_str(text).expect("the protocol is JSON");
            }
        }
    }
}
