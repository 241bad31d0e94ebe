//! The report's page in a real browser, at a desktop's and a telephone's width, on a light and on a dark ground.
//!
//! `cargo test --test report_chromium -- --ignored`, with Chromium on PATH or named by ULPIAN_CHROMIUM.

#![allow(clippy::unwrap_used)]

mod browser;
mod common;
mod reported;

use std::collections::BTreeSet;
use std::path::PathBuf;

use browser::{Browser, Screen, Tab};
use common::{run, text};
use reported::{EXECUTORS, campaign, found, reproduce, thousands};
use serde_json::json;
use ulpian::campaign::findings::Finding;

const DESKTOP: Screen = Screen { width: 1280, height: 900, phone: false, dark: false };
const PHONE: Screen = Screen { width: 390, height: 844, phone: true, dark: false };

/// A page, and the findings of its ledger.
fn page() -> (tempfile::TempDir, PathBuf, Vec<Finding>) {
    let dir = tempfile::tempdir().unwrap();
    let ledger = campaign(dir.path());
    reproduce(&ledger);
    let out = dir.path().join("page");
    let said = run(&["report", "--ledger", text(&ledger), "--out", text(&out)]);
    assert_eq!(said.code, 0, "{}", said.err);
    let found = found(&ledger);
    (dir, out.join("index.html"), found)
}

/// The entries that a page must show: (pattern's labels, op, cause) of every finding that passes.
fn entries(found: &[Finding], passes: impl Fn(&Finding) -> bool) -> BTreeSet<[String; 2]> {
    let entry = |f: &Finding| [f.op.clone(), f.cause.name().to_owned()];
    found.iter().filter(|f| passes(f)).map(entry).collect()
}

/// The entries that it shows, as laid out.
fn shown(tab: &mut Tab) -> (usize, BTreeSet<[String; 2]>) {
    let rows = tab.value(
        "[...document.querySelectorAll('details.finding')].filter((row) => row.getBoundingClientRect().height > 0)
         .map((row) => [row.dataset.op, row.dataset.cause])",
    );
    let rows: Vec<[String; 2]> = serde_json::from_value(rows).unwrap();
    (rows.len(), rows.into_iter().collect())
}

/// How many entries the findings that pass make.
fn count(found: &[Finding], passes: impl Fn(&Finding) -> bool) -> usize {
    let entry = |f: &&Finding| (f.pattern, f.labels.clone(), f.op.clone(), f.cause);
    found.iter().filter(|f| passes(f)).map(|f| entry(&f)).collect::<BTreeSet<_>>().len()
}

fn assert_shows(tab: &mut Tab, found: &[Finding], what: &str, passes: impl Fn(&Finding) -> bool) {
    let expected = (count(found, &passes), entries(found, &passes));
    assert_eq!(shown(tab), expected, "{what}");
    let said = tab.value("document.getElementById('shown').textContent");
    assert_eq!(said, format!("{} of {} shown", expected.0, count(found, |_| true)), "{what}");
}

/// Sets a filter as a reader's choice does.
fn choose(tab: &mut Tab, name: &str, value: &str) {
    tab.value(&format!(
        "(() => {{ const field = document.getElementById('filters').elements[{}]; field.value = {};
         field.dispatchEvent(new Event('input', {{bubbles: true}})); }})()",
        json!(name),
        json!(value)
    ));
}

#[test]
#[ignore = "needs Chromium; run with --ignored"]
fn it_opens_with_every_figure_at_every_width() {
    let (_dir, page, _) = page();
    let browser = Browser::start();
    for screen in [DESKTOP, PHONE, Screen { dark: true, ..DESKTOP }, Screen { dark: true, ..PHONE }] {
        let mut tab = browser.open(&page, "", screen);
        assert_eq!(tab.value("innerWidth"), json!(screen.width), "{screen:?}");
        tab.value("for (const part of document.querySelectorAll('details')) part.open = true");
        let figures = tab.value(
            "[...document.querySelectorAll('.plot')].map((plot) => { const [p, s] = [plot, plot.firstElementChild].map((e) =>
             e.getBoundingClientRect()); return [p.left, p.right, p.height, s.width, s.height]; })",
        );
        let figures: Vec<[f64; 5]> = serde_json::from_value(figures).unwrap();
        assert!(figures.len() >= 8, "{screen:?}: {figures:?}");
        for [left, right, height, drawn, drawn_height] in figures {
            assert!(left >= 0.0 && right <= f64::from(screen.width), "{screen:?}: {left}..{right}");
            assert!(
                height > 50.0 && drawn > 100.0 && drawn_height > 50.0,
                "{screen:?}: {drawn} x {drawn_height}"
            );
        }
        let wide = tab.value("document.documentElement.scrollWidth - document.documentElement.clientWidth");
        assert_eq!(wide, json!(0), "{screen:?}: the page is wider than the screen");
        // Legible: the text of figures, as laid out, is no smaller than 9 px.
        let smallest = tab.value(
            "Math.min(...[...document.querySelectorAll('.plot text')].map((t) => t.getBoundingClientRect().height))",
        );
        assert!(smallest.as_f64().unwrap() >= 9.0, "{screen:?}: text of {smallest} px");
        assert_eq!(tab.complaints(), [""; 0], "{screen:?}");
        let loaded = tab.loaded();
        assert!(
            loaded.iter().all(|from| from.starts_with("file://") || from.starts_with("data:")),
            "{loaded:?}"
        );
        assert_eq!(loaded.iter().filter(|from| from.starts_with("file://")).count(), 1, "{loaded:?}");
    }
}

#[test]
#[ignore = "needs Chromium; run with --ignored"]
fn dark_is_dark_and_every_text_stands_out() {
    let (_dir, page, _) = page();
    let browser = Browser::start();
    for dark in [false, true] {
        let mut tab = browser.open(&page, "", Screen { dark, ..DESKTOP });
        tab.value("for (const part of document.querySelectorAll('details')) part.open = true");
        // The contrast (WCAG 2) of ink against each ground that it stands on.
        let contrasts = tab.value(
            "(() => { const light = (css) => { const [r, g, b] = css.match(/[\\d.]+/g).slice(0, 3).map((v) => { v /= 255;
               return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
             const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
             const css = (e, of) => getComputedStyle(e)[of];
             const ground = css(document.documentElement, 'backgroundColor');
             return {ground: light(ground),
               all: [['text', contrast(css(document.body, 'color'), ground)],
                 ...['.note', '.tile small', 'a'].map((s) => [s, contrast(css(document.querySelector(s), 'color'), ground)]),
                 ...[...document.querySelectorAll('.plot > svg:not(.pattern) text')].map((t) => ['plot', contrast(css(t, 'fill'), ground)]),
                 ...[...document.querySelectorAll('.pattern g')].map((g) => ['node', contrast(css(g.querySelector('text'), 'fill'),
                   css(g.querySelector('rect'), 'fill'))]),
                 ...[...document.querySelectorAll('.cause')].map((c) => ['cause', contrast(css(c, 'color'), css(c, 'backgroundColor'))])]};
             })()",
        );
        assert_eq!(contrasts["ground"].as_f64().unwrap() < 0.1, dark);
        let all: Vec<(String, f64)> = serde_json::from_value(contrasts["all"].clone()).unwrap();
        assert!(all.len() > 20, "{all:?}");
        for (what, contrast) in all {
            assert!(contrast >= 4.5, "dark: {dark}, {what}: {contrast}");
        }
    }
}

#[test]
#[ignore = "needs Chromium; run with --ignored"]
fn filters_show_exactly_what_the_ledger_has() {
    let (_dir, page, found) = page();
    assert!(count(&found, |_| true) >= 4, "{found:?}");
    let browser = Browser::start();
    for screen in [DESKTOP, PHONE] {
        let mut tab = browser.open(&page, "", screen);
        assert_shows(&mut tab, &found, "no filter", |_| true);
        for cause in ["framework", "defect"] {
            choose(&mut tab, "cause", cause);
            assert_shows(&mut tab, &found, cause, |f| f.cause.name() == cause);
            for op in ["div", "relu", "add"] {
                if tab.value(&format!("!!document.querySelector('select[name=op] option[value={op}]')"))
                    == json!(true)
                {
                    choose(&mut tab, "op", op);
                    assert_shows(&mut tab, &found, op, |f| f.cause.name() == cause && f.op == op);
                }
            }
            choose(&mut tab, "op", "");
        }
        tab.click("#filters button");
        assert_shows(&mut tab, &found, "cleared", |_| true);
        for executor in EXECUTORS {
            choose(&mut tab, "executor", executor);
            assert_shows(&mut tab, &found, executor, |f| f.worst.executor == executor);
        }
        let nothing = tab.value("document.getElementById('none').hidden");
        assert_eq!(nothing, json!(count(&found, |f| f.worst.executor == EXECUTORS[2]) > 0));
        choose(&mut tab, "executor", EXECUTORS[0]);
        assert_eq!(
            tab.value("document.getElementById('none').hidden"),
            json!(false),
            "nobody accuses the first"
        );
        tab.click("#filters button");
        // Typed, key by key.
        tab.click("#filters input");
        tab.call("Input.insertText", json!({"text": "ADD →"}));
        assert_shows(&mut tab, &found, "typed", |f| f.labels.starts_with("add"));
        assert_eq!(tab.value("location.hash"), json!("#findings?text=ADD+%E2%86%92"));
        tab.click("#filters button");
        assert_shows(&mut tab, &found, "cleared again", |_| true);
        assert_eq!(tab.value("location.hash"), json!("#findings"));
        assert_eq!(tab.complaints(), [""; 0]);
    }
}

#[test]
#[ignore = "needs Chromium; run with --ignored"]
fn links_lead_where_they_say() {
    let (_dir, page, found) = page();
    let browser = Browser::start();
    for screen in [DESKTOP, PHONE] {
        // A filtered page can be linked to, when it is opened and while it is open.
        let mut tab = browser.open(&page, "#findings?cause=framework&op=div", screen);
        let framework = |f: &Finding| f.cause.name() == "framework" && f.op == "div";
        assert_shows(&mut tab, &found, "opened with filters", framework);
        let top = tab.value("document.getElementById('findings').getBoundingClientRect().top");
        assert!((0.0..200.0).contains(&top.as_f64().unwrap()), "{screen:?}: the findings are at {top}");
        tab.value(
            "new Promise((done) => { addEventListener('hashchange', () => setTimeout(done), {once: true});
             location.hash = '#findings?cause=defect'; })",
        );
        assert_shows(&mut tab, &found, "another link", |f| f.cause.name() == "defect");

        // A finding can be linked to: it opens, even where a filter hid it.
        let name = found.iter().find(|f| framework(f)).unwrap().name();
        let id = tab.value("document.querySelector('details.finding[data-cause=framework]').id");
        assert!(found.iter().any(|f| id == json!(f.name())), "{id}, such as {name}");
        tab.value(&format!(
            "new Promise((done) => {{ addEventListener('hashchange', () => setTimeout(done), {{once: true}}); location.hash = {id}; }})"
        ));
        let open = tab.value(&format!(
            "(() => {{ const e = document.getElementById({id}); return e.open && !e.hidden; }})()"
        ));
        assert_eq!(open, json!(true));

        // The overview's links filter, too.
        tab.click(".kind a");
        let hash = tab.value("location.hash");
        assert!(hash.as_str().unwrap().starts_with("#findings?cause="), "{hash}");
        let (rows, _) = shown(&mut tab);
        assert!(rows > 0 && rows < count(&found, |_| true), "{hash}: {rows}");

        // Every link within the page has its place, and every reproducer its file.
        let links = tab.value("[...document.querySelectorAll('a')].map((a) => a.getAttribute('href'))");
        let links: Vec<String> = serde_json::from_value(links).unwrap();
        let mut files = 0;
        for link in links {
            match link.strip_prefix('#') {
                Some(place) => {
                    let id = place.split('?').next().unwrap();
                    assert_eq!(
                        tab.value(&format!("!!document.getElementById({})", json!(id))),
                        json!(true),
                        "{link}"
                    );
                }
                None => {
                    assert!(page.parent().unwrap().join(&link).is_file(), "{link}");
                    files += 1;
                }
            }
        }
        assert_eq!(files, 2, "a script and its case");
        assert_eq!(tab.complaints(), [""; 0]);
    }
}

#[test]
#[ignore = "needs Chromium; run with --ignored"]
fn thousands_of_executions_open_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (ledger, out) = (thousands(dir.path()), dir.path().join("page"));
    let said = run(&["report", "--ledger", text(&ledger), "--out", text(&out)]);
    assert_eq!(said.code, 0, "{}", said.err);
    let browser = Browser::start();
    for screen in [DESKTOP, PHONE] {
        let mut tab = browser.open(&out.join("index.html"), "", screen);
        let opened =
            tab.value("performance.getEntriesByType('navigation')[0].loadEventEnd").as_f64().unwrap();
        let filtered = tab.value(
            "(() => { const form = document.getElementById('filters'); const begun = performance.now();
             form.elements.op.value = 'gelu'; form.dispatchEvent(new Event('input', {bubbles: true}));
             document.body.getBoundingClientRect(); return performance.now() - begun; })()",
        );
        println!("{screen:?}: open after {opened:.0} ms, filtered after {filtered:.0} ms");
        // Well below a second on an idle machine; tests run on busy ones.
        assert!(opened < 5000.0, "{screen:?}: open after {opened} ms");
        assert_eq!(tab.complaints(), [""; 0]);
    }
}
