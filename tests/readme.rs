//! The README tells the truth: its commands and flags exist, its files are there, its example prints what it shows.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeSet;
use std::path::Path;

use common::{npy, run, said, ulpian, ulpian_with_python};

fn readme() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap()
}

/// The lines of the README's code blocks.
fn code() -> Vec<String> {
    let mut within = false;
    let mut lines = Vec::new();
    for line in readme().lines() {
        if line.starts_with("```") {
            within = !within;
        } else if within {
            lines.push(line.trim().to_owned());
        }
    }
    assert!(!within, "a code block is not closed");
    lines
}

#[test]
fn every_command_and_flag_exists() {
    let mut commands = BTreeSet::new();
    for line in code() {
        let line = line.strip_prefix("$ ").unwrap_or(&line).replace("cargo run --release -- ", "ulpian ");
        let Some(words) = line.strip_prefix("ulpian ") else { continue };
        let words: Vec<&str> = words.split_whitespace().take_while(|w| *w != "#").collect();
        let command = words[0];
        commands.insert(command.to_owned());
        let nested = usize::from(command == "campaign");
        let help = run(&[&words[..=nested], &["--help"]].concat());
        assert_eq!(help.code, 0, "`{line}`: no such command");
        for flag in words.iter().filter(|w| w.starts_with("--")) {
            assert!(help.out.contains(flag.split('=').next().unwrap()), "`{line}`: no such flag");
        }
    }
    for command in ["doctor", "truth", "judge", "pack"] {
        assert!(commands.contains(command), "the README shows no use of `{command}`");
    }
}

/// The README's example, from the arrays on: each command, and what it prints to the letter.
#[test]
fn the_example_prints_what_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let x = [169.0f32, 49.5];
    assert!(readme().contains("x = np.float32([169, 49.5])"), "the example has other numbers than this test");
    let side = |name: &str, f: fn(f32) -> f32| {
        std::fs::write(dir.path().join(name), npy(&[2], &x.map(f))).unwrap();
    };
    side("x.npy", |x| x);
    side("cpu.npy", |x| x / 13.0);
    side("gpu.npy", |x| x * (1.0 / 13.0));

    let text = readme();
    let mut shown = 0;
    for block in text.split("```\n$ ").skip(1).filter_map(|rest| rest.split("\n```").next()) {
        let (command, expected) = block.split_once('\n').unwrap();
        let words: Vec<&str> = command.split_whitespace().collect();
        assert_eq!(words[0], "ulpian");
        let mut program = ulpian(&words[1..]);
        program.current_dir(dir.path());
        let said = said(program);
        let lines = |text: &str| text.trim_end().lines().map(|l| l.trim_end().to_owned()).collect::<Vec<_>>();
        assert_eq!(lines(&said.out), lines(expected), "`{command}` prints something else; {}", said.err);
        shown += 1;
    }
    assert_eq!(shown, 2, "the example is a `pack` and a `judge`");
}

/// The section on a model of one's own, as it stands, but for the number of cases.
#[test]
fn five_commands_lead_from_a_model_to_a_report() {
    let dir = tempfile::tempdir().unwrap();
    let text = readme();
    let section = text.split("## From your model to a report").nth(1).unwrap().split("\n## ").next().unwrap();
    let model = section.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
    std::fs::write(dir.path().join("my_model.py"), model).unwrap();
    let commands: Vec<&str> = section.lines().filter(|line| line.starts_with("ulpian ")).collect();
    assert_eq!(commands.len(), 5);
    for line in commands {
        let line = line.replace('\'', "").replace("--count 100", "--count 6 --interventions quick");
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        let mut program = ulpian_with_python(&words);
        program.current_dir(dir.path());
        let said = said(program);
        assert!(said.code <= 1, "`{line}` ended with {}: {}", said.code, said.err);
    }
    let page = std::fs::read_to_string(dir.path().join("page/index.html")).unwrap();
    assert!(page.contains("batch_norm") && !page.contains("src=\"http"));
    assert!(dir.path().join("page/report.md").is_file());
}

#[test]
fn the_two_first_commands_are_those_that_ci_runs() {
    let ci = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(".ci/run")).unwrap();
    let blocks = code();
    for command in ["cargo run --release -- judge tests/docket --expect", "cargo test --release --workspace"]
    {
        assert!(blocks.iter().any(|line| line == command), "the README lacks `{command}`");
        let locked = command
            .replace("--release", "--release --locked")
            .replace("--release --locked --workspace", "--release --workspace --locked");
        assert!(ci.contains(&locked), "CI does not run `{locked}`");
    }
}

#[test]
fn every_link_within_the_repository_leads_somewhere() {
    for document in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(document)).unwrap();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let local = !target.starts_with("http") && !target.starts_with('#');
            assert!(
                !local || Path::new(env!("CARGO_MANIFEST_DIR")).join(target).exists(),
                "{document}: {target}"
            );
        }
    }
}
