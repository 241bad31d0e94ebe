# The tasks of this repository; `just --list` shows them.

# Everything that CI runs.
ci: format-check lint test doc deny

# Is the formatting rustfmt's?
format-check:
    cargo fmt --all --check

# Formats the code.
format:
    cargo fmt --all

# No warning, of the compiler's or clippy's, in any target.
lint:
    cargo clippy --release --workspace --all-targets --locked -- -D warnings

# Every test of every crate, doc tests included.
test:
    cargo test --release --workspace --locked

# The report's page in a real browser: Chromium on PATH, or the one that ULPIAN_CHROMIUM names.
test-page:
    cargo test --release --locked --test report_chromium -- --ignored

# Judges the docket: thirty public disputes, each with its expected outcome.
docket:
    cargo run --release --locked -- judge tests/docket --expect

# The documentation, without a broken link.
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

# Licences, banned crates and sources of the dependencies.
deny:
    cargo deny --locked check licenses bans sources

# Completion scripts and manual pages, into target/dist.
dist:
    cargo build --release --locked
    mkdir -p target/dist
    target/release/ulpian man --out target/dist
    target/release/ulpian completions bash > target/dist/ulpian.bash
    target/release/ulpian completions zsh > target/dist/_ulpian
    target/release/ulpian completions fish > target/dist/ulpian.fish

# Traces some 110 real models into DIR, one after another. Needs a Python with their packages (see the README).
trace-models DIR:
    grep -v '^#' tests/tracing/models.txt | tr '\n' '\0' | xargs -0 cargo run --release --locked -- trace --json --out {{DIR}}

# Times the miner; beside others where their commands are given (see mining/benches/mine.rs).
bench-mine *others:
    cargo bench --locked -p ulpian-mining --bench mine -- {{others}}
