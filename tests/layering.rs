//! The arrows between the crates: each may use those that its row names, and no other, not even for its tests.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{Metadata, MetadataCommand, Package};

/// What each crate of the workspace may use of ours.
const MAY_USE: &[(&str, &[&str])] = &[
    ("ulpian-spec", &[]),
    ("ulpian-reference", &["ulpian-spec"]),
    ("ulpian-kernels", &["ulpian-spec"]),
    ("ulpian-mining", &["ulpian-spec"]),
    ("ulpian-vendor-compare", &["ulpian-spec", "ulpian-reference"]),
    (
        "ulpian",
        &["ulpian-spec", "ulpian-reference", "ulpian-kernels", "ulpian-mining", "ulpian-vendor-compare"],
    ),
];

/// Who alone may use these foreign crates: each crate of ours has one foreign world.
const FOREIGN: &[(&str, &[&str])] = &[
    ("clap", &["ulpian"]),
    ("anyhow", &["ulpian"]),
    ("anstream", &["ulpian"]),
    ("indicatif", &["ulpian"]),
    ("comfy-table", &["ulpian"]),
    ("zip", &["ulpian"]),
    ("rusqlite", &["ulpian"]),
    ("signal-hook", &["ulpian"]),
    ("rustix", &["ulpian-vendor-compare"]),
    ("core-math", &["ulpian-reference"]),
    // The judge's bounds are matrix products of magnitudes.
    ("ndarray", &["ulpian-reference", "ulpian-vendor-compare"]),
    ("cudarc", &["ulpian-kernels"]),
    ("libloading", &["ulpian-kernels"]),
    ("safetensors", &["ulpian-spec"]),
    ("zstd", &["ulpian-mining"]),
];

fn metadata() -> Metadata {
    MetadataCommand::new().no_deps().exec().expect("cargo metadata runs")
}

fn uses(package: &Package) -> BTreeSet<String> {
    package.dependencies.iter().map(|d| d.name.to_string()).collect()
}

#[test]
fn every_crate_uses_only_those_below_it() {
    let metadata = metadata();
    let table: BTreeMap<&str, &[&str]> = MAY_USE.iter().copied().collect();
    let ours: BTreeSet<String> = metadata.packages.iter().map(|p| p.name.to_string()).collect();
    let known: BTreeSet<String> = table.keys().map(|n| (*n).to_owned()).collect();
    assert_eq!(ours, known, "the workspace's crates and the rows of the table are the same");
    for package in &metadata.packages {
        for used in uses(package).intersection(&ours) {
            assert!(
                table[package.name.as_str()].contains(&used.as_str()),
                "{} uses {used}, which is no arrow of the table",
                package.name
            );
        }
    }
}

#[test]
fn the_reference_and_the_executors_never_meet_below_the_root() {
    for package in metadata().packages.iter().filter(|p| p.name.as_str() == "ulpian-reference") {
        for used in uses(package) {
            assert!(!used.contains("kernels") && !used.contains("vendor"), "the reference uses {used}");
        }
    }
}

#[test]
fn foreign_worlds_stay_with_their_crate() {
    for package in &metadata().packages {
        let used: BTreeSet<String> = package
            .dependencies
            .iter()
            .filter(|d| d.kind == cargo_metadata::DependencyKind::Normal)
            .map(|d| d.name.to_string())
            .collect();
        for (foreign, may) in FOREIGN {
            assert!(
                !used.contains(*foreign) || may.contains(&package.name.as_str()),
                "{} uses {foreign}, which belongs to {may:?}",
                package.name
            );
        }
    }
}

#[test]
fn every_crate_takes_the_workspace_lints_version_and_licence() {
    for package in &metadata().packages {
        let manifest = std::fs::read_to_string(&package.manifest_path).expect("the manifest is readable");
        assert!(
            manifest.contains("[lints]\nworkspace = true"),
            "{} does not take the workspace's lints",
            package.name
        );
        assert_eq!(package.license.as_deref(), Some("MIT OR Apache-2.0"), "{}", package.name);
        assert!(package.description.is_some(), "{} has no description", package.name);
    }
}
