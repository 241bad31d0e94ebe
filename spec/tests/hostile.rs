//! Hostile input: a clear error, never a panic, never an allocation on the word of a length.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use ulpian_spec::Case;
use ulpian_spec::case::{Limits, SafetensorsSource, TensorSource};

const GOOD: &str = r#"{
  "format": "ulpian-case/1", "name": "good", "source": "here",
  "nodes": [
    {"id": "ln", "op": "layer_norm", "args": {
      "input": {"dtype": "float32", "shape": [2, 3], "data": [[1, 2.5, "0x1p-3"], ["nan", -0.0, 1e-3]]},
      "normalized_shape": [3], "eps": 1e-5}},
    {"id": "p", "op": "max_pool2d", "args": {
      "input": {"dtype": "int8", "shape": [1, 2, 2], "data": [1, -2, 3, 4]}, "kernel_size": [2, 1], "return_indices": true}}
  ],
  "outputs": ["ln", "p.1"],
  "observed": [{"executor": "a", "node": "p.1", "tensor": {"dtype": "int64", "shape": [1, 1, 2], "data": [2, 3]}}],
  "expect": {"cause": ["rounding"], "truth": {"p": {"values": [3, "inf"]}}}
}"#;

fn refuse(text: &str) -> String {
    match Case::from_json(text, "bad.json", Limits::default()) {
        Ok(case) => panic!("taken: {case:?}"),
        Err(error) => {
            let message = error.to_string();
            assert!(message.starts_with("bad.json: "), "{message}");
            assert!(message.len() < 2000, "a message of {} bytes", message.len());
            message
        }
    }
}

/// A case of one node.
fn one(op: &str, args: &str) -> String {
    format!(
        r#"{{"format": "ulpian-case/1", "name": "bad", "nodes": [{{"id": "n", "op": "{op}", "args": {args}}}]}}"#
    )
}

fn refuse_args(op: &str, args: &str) -> String {
    refuse(&one(op, args))
}

fn f32(shape: &str, count: usize) -> String {
    let data = vec!["0.5"; count].join(",");
    format!(r#"{{"dtype": "float32", "shape": {shape}, "data": [{data}]}}"#)
}

fn safetensors(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat()
}

fn read_folder(folder: &Path, tensors: &str) -> Result<Case, String> {
    let args = r#"{"input": "@x"}"#;
    let text = one("relu", args).replacen('{', &format!(r#"{{"tensors": {tensors}, "#), 1);
    let path = folder.join("case.json");
    fs::write(&path, text).expect("written");
    Case::read(&path, Limits::default()).map_err(|e| e.to_string())
}

#[test]
fn every_truncation_and_every_changed_byte_is_survived() {
    Case::from_json(GOOD, "good.json", Limits::default()).expect("good");
    for end in 0..GOOD.len() {
        refuse(&GOOD[..end]);
    }
    for at in 0..GOOD.len() {
        for byte in [b'"', b'{', b']', b'0', b'9', b'-', b'e', b'\\', b' ', b'@', b'%', 1] {
            let mut bytes = GOOD.as_bytes().to_vec();
            bytes[at] = byte;
            let text = String::from_utf8(bytes).expect("ASCII");
            let _ = Case::from_json(&text, "changed.json", Limits::default());
        }
    }
}

#[test]
fn nesting_does_not_exhaust_the_stack() {
    const DEEP: usize = 2_000_000;
    let (open, close) = ("[".repeat(DEEP), "]".repeat(DEEP));
    refuse(&open);
    refuse(&format!("{open}{close}"));
    refuse(&r#"{"a":"#.repeat(DEEP));
    refuse(&GOOD.replace(r#""here""#, &format!("{open}{close}")));
    refuse(&GOOD.replace(r#"["rounding"]"#, &format!("{open}{close}")));
    for shape in ["[]", "[1]", "[1, 1, 1, 1, 1]"] {
        refuse_args(
            "relu",
            &format!(r#"{{"input": {{"dtype": "int8", "shape": {shape}, "data": {open}1{close}}}}}"#),
        );
    }
    refuse_args("linear", &format!("{open}{close}"));
    refuse_args(
        "layer_norm",
        &format!(r#"{{"input": {}, "normalized_shape": {open}{close}}}"#, f32("[1]", 1)),
    );
    refuse_args(
        "relu",
        &format!(r#"{{"input": {{"dtype": "int8", "shape": [{}], "data": []}}}}"#, "0,".repeat(99)),
    );
}

#[test]
fn what_is_given_twice_is_refused() {
    let twice = |from: &str, to: &str| refuse(&GOOD.replacen(from, to, 1));
    assert!(twice(r#""name""#, r#""name": "a", "name""#).contains("`name` is given twice"));
    assert!(twice(r#""op""#, r#""op": "relu", "op""#).contains("`op` is given twice"));
    assert!(twice(r#""eps""#, r#""eps": 1, "\u0065ps""#).contains("node ln: args: `eps` is given twice"));
    assert!(
        twice(r#""shape""#, r#""shape": [6], "shape""#).contains("argument input: `shape` is given twice")
    );
    assert!(twice(r#""cause""#, r#""cause": [], "cause""#).contains("expect: duplicate field"));
    assert!(twice(r#""p.1"]"#, r#""p.1", "ln"]"#).contains("outputs: ln is given twice"));
    let again = r#""observed": [{"executor": "a", "node": "%p.1", "tensor": {"dtype": "int8", "shape": [], "data": 1}}, "#;
    assert!(twice(r#""observed": ["#, again).contains("observed[1]: p.1 by a is given twice"));
    let header = r#"{"x": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}, "x": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}"#;
    let error = SafetensorsSource::new(Cursor::new(safetensors(header, &[0]))).err().expect("refused");
    assert!(error.contains("`x` is given twice"), "{error}");
}

#[test]
fn tensors_of_two_to_the_forty_elements_are_refused() {
    let limit = "more elements than the limit of 1073741824";
    let given = r#"{"input": {"dtype": "int8", "shape": [1099511627776], "data": []}}"#;
    assert!(refuse_args("relu", given).contains(limit));
    let overflowing =
        r#"{"input": {"dtype": "int8", "shape": [4294967296, 4294967296, 4294967296], "data": []}}"#;
    assert!(refuse_args("relu", overflowing).contains(limit));
    let (column, row) = (f32("[65536, 1]", 65536), f32("[65536]", 65536));
    for op in ["add", "mul", "div"] {
        let message = refuse_args(op, &format!(r#"{{"input": {column}, "other": {row}}}"#));
        assert!(message.contains("node n: the result is too large") && message.contains(limit), "{message}");
    }
    let row = f32("[1, 65536]", 65536);
    assert!(refuse_args("matmul", &format!(r#"{{"input": {column}, "other": {row}}}"#)).contains(limit));
    let plane = f32("[1, 1, 1]", 1);
    for (op, args) in [
        ("adaptive_avg_pool2d", format!(r#"{{"input": {plane}, "output_size": 1048576}}"#)),
        ("adaptive_avg_pool2d", format!(r#"{{"input": {plane}, "output_size": 9223372036854775807}}"#)),
        (
            "conv2d",
            format!(r#"{{"input": {plane}, "weight": {}, "padding": 1048576}}"#, f32("[1, 1, 1, 1]", 1)),
        ),
        (
            "conv2d",
            format!(
                r#"{{"input": {plane}, "weight": {}, "padding": 9223372036854775807}}"#,
                f32("[1, 1, 1, 1]", 1)
            ),
        ),
    ] {
        refuse_args(op, &args);
    }
    // Without elements nothing is too large, as long as the sizes can be counted.
    let empty = |shape: &str| format!(r#"{{"input": {{"dtype": "int8", "shape": {shape}, "data": []}}}}"#);
    for op in ["flatten", "relu"] {
        let taken = one(op, &empty("[9223372036854775807, 0]"));
        Case::from_json(&taken, "empty.json", Limits::default()).expect("it has no element");
        refuse_args(op, &empty("[9223372036854775807, 9223372036854775807, 0]"));
    }
}

#[test]
fn absurd_attributes_do_not_overflow() {
    let absurd = [i64::MIN, i64::MIN + 1, -1, 0, 1, 1 << 31, 1 << 40, 1 << 62, i64::MAX - 1, i64::MAX];
    let plane = f32("[1, 2, 3, 3]", 18);
    let weight = f32("[2, 2, 2, 2]", 16);
    for a in absurd {
        for b in absurd {
            for (op, args) in [
                ("flatten", format!(r#""start_dim": {a}, "end_dim": {b}"#)),
                ("softmax", format!(r#""dim": {a}"#)),
                ("adaptive_avg_pool2d", format!(r#""output_size": [{a}, {b}]"#)),
                ("max_pool2d", format!(r#""kernel_size": {a}, "stride": {b}, "ceil_mode": true"#)),
                ("max_pool2d", format!(r#""kernel_size": [2, {a}], "dilation": {b}"#)),
                ("max_pool2d", format!(r#""kernel_size": {a}, "padding": {b}"#)),
                ("conv2d", format!(r#""weight": {weight}, "stride": {a}, "padding": {b}"#)),
                ("conv2d", format!(r#""weight": {weight}, "dilation": {a}, "padding": {b}"#)),
                ("conv2d", format!(r#""weight": {weight}, "dilation": {a}, "groups": {b}"#)),
                ("layer_norm", format!(r#""normalized_shape": [{a}, {b}]"#)),
                ("add", format!(r#""other": {a}, "alpha": {b}"#)),
                ("div", format!(r#""other": {a}, "rounding_mode": "floor""#)),
            ] {
                let text = one(op, &format!(r#"{{"input": {plane}, {args}}}"#));
                if let Ok(case) = Case::from_json(&text, "absurd.json", Limits::default()) {
                    assert!(case.nodes[0].types[0].elements().is_some_and(|n| n <= 1 << 30), "{text}");
                }
            }
        }
    }
}

#[test]
fn numbers_are_due() {
    let x = f32("[2, 2]", 4);
    for (op, args, expected) in [
        (
            "layer_norm",
            r#""normalized_shape": [2], "eps": "nan""#,
            "argument eps: expected a number, got NaN",
        ),
        ("layer_norm", r#""normalized_shape": ["nan"]"#, "argument normalized_shape: expected an integer"),
        (
            "batch_norm",
            r#""training": true, "eps": "nan""#,
            "argument eps: expected a positive number, got NaN",
        ),
        ("batch_norm", r#""training": true, "eps": 0"#, "argument eps: expected a positive number, got 0"),
        (
            "batch_norm",
            r#""training": true, "momentum": "inf""#,
            "argument momentum: expected a number, got inf",
        ),
        ("dropout", r#""p": "nan""#, "argument p: expected a probability, 0 to 1, got NaN"),
        ("softmax", r#""dim": "nan""#, "argument dim: expected an integer, got \"nan\""),
        ("softmax", r#""dim": 1e0"#, "argument dim: expected an integer, got the float 1e0"),
        (
            "softmax",
            r#""dim": 9223372036854775808"#,
            "argument dim: 9223372036854775808 does not fit into 64 bits",
        ),
        ("add", r#""other": 1e999"#, "argument other: 1e999 is beyond the greatest finite float64"),
        ("add", r#""other": "1e999""#, "argument other: 1e999 is beyond"),
        ("add", r#""other": "one""#, "argument other: one is not a number"),
        ("add", r#""other": []"#, "argument other: expected a number, got []"),
        ("dropout", r#""training": 1"#, "argument training: expected true or false, got 1"),
    ] {
        let message = refuse_args(op, &format!(r#"{{"input": {x}, {args}}}"#));
        assert!(message.contains(expected), "{message}");
    }
    for literal in ["NaN", "Infinity", "-Infinity", "+1", "01", "1.", ".5", "0x10", "1e", "'1'"] {
        refuse_args("add", &format!(r#"{{"input": {x}, "other": {literal}}}"#));
    }
    let message = refuse_args("relu", r#"{"input": {"dtype": "int32", "shape": [1], "data": ["nan"]}}"#);
    assert!(message.contains("element 0: nan is not representable in int32"), "{message}");
    let long =
        format!(r#"{{"input": {{"dtype": "float16", "shape": [], "data": 1{}}}}}"#, "0".repeat(1_000_000));
    assert!(refuse_args("relu", &long).contains("is beyond the greatest finite float16"));
}

#[test]
fn names_that_make_no_file_are_refused() {
    for name in ["", ".", "..", ".hidden", "a/b", "..\\b", "a\\u0000b", "a\\nb", &"x".repeat(201)] {
        let message =
            refuse(&GOOD.replace(r#""good""#, &format!(r#""{}""#, name.replace("..\\b", "..\\\\b"))));
        assert!(message.contains("bad.json: name: "), "{message}");
    }
    for id in ["", "@a", "%a", "a b", "a.1", "\\u0007", &"x".repeat(201)] {
        refuse(&GOOD.replace(r#""id": "p""#, &format!(r#""id": "{id}""#)));
    }
    refuse(&GOOD.replace(r#""executor": "a""#, r#""executor": """#));
    refuse(&GOOD.replace("ulpian-case/1", "ulpian-case/2"));
    refuse(&GOOD.replace(r#""source""#, r#""sauce""#));
    refuse(r#"{"format": "ulpian-case/1", "name": "none", "nodes": []}"#);
    refuse(r#"{"format": "ulpian-case/1", "name": "none"}"#);
    refuse("");
    refuse("null");
    refuse("\u{feff}{}");
}

#[test]
fn a_long_cycle_is_named_in_time() {
    let node =
        |i: usize, to: usize| format!(r#"{{"id": "n{i}", "op": "relu", "args": {{"input": "%n{to}"}}}}"#);
    let count = 20_000;
    let nodes: Vec<String> = (0..count).map(|i| node(i, (i + 1) % count)).collect();
    let text = format!(r#"{{"format": "ulpian-case/1", "name": "ring", "nodes": [{}]}}"#, nodes.join(","));
    let message = Case::from_json(&text, "ring.json", Limits::default()).expect_err("a cycle").to_string();
    assert!(
        message.contains("node n0, argument input: a cycle: node n0 uses %n1, which uses %n2"),
        "{message:.200}"
    );
    assert!(message.len() < 2000, "a message of {} bytes", message.len());
}

#[test]
fn paths_stay_inside_the_folder() {
    let outside = tempfile::tempdir().expect("a folder");
    let header = r#"{"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}"#;
    let bytes = safetensors(header, &[0; 4]);
    fs::write(outside.path().join("x.safetensors"), &bytes).expect("written");
    let folder = outside.path().join("inner");
    fs::create_dir_all(folder.join("sub")).expect("made");
    for (tensors, expected) in [
        (r#""../x.safetensors""#, "`..` is refused"),
        (r#""sub/../../x.safetensors""#, "`..` is refused"),
        (r#""/etc/passwd""#, "an absolute path is refused"),
        (r#""C:\\x.safetensors""#, "this is not a path that can be used"),
        (r#""a\u0000b""#, "this is not a path that can be used"),
        (r#""""#, "this is not a path that can be used"),
        (r#""sub""#, "this is not a regular file"),
        (r#""gone.safetensors""#, "No such file"),
        ("7", "tensors: expected a string, got a number"),
    ] {
        let message = read_folder(&folder, tensors).expect_err("refused");
        assert!(message.contains("case.json: ") && message.contains(expected), "{message}");
    }
    #[cfg(unix)]
    {
        let link = |to: &Path, name: &str| std::os::unix::fs::symlink(to, folder.join(name)).expect("linked");
        link(&outside.path().join("x.safetensors"), "out.safetensors");
        link(outside.path(), "out");
        link(Path::new("/dev/zero"), "zero");
        link(Path::new("loop"), "loop");
        for tensors in ["out.safetensors", "out/x.safetensors", "zero", "loop"] {
            assert!(read_folder(&folder, &format!("{tensors:?}")).is_err(), "{tensors}");
        }
        fs::write(folder.join("sub/x.safetensors"), &bytes).expect("written");
        link(Path::new("sub/x.safetensors"), "in.safetensors");
        read_folder(&folder, r#""in.safetensors""#).expect("a link that stays inside");
    }
}

#[test]
fn files_that_are_no_cases() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("case.json");
    let read = |limits| Case::read(&path, limits).expect_err("refused").to_string();
    assert!(read(Limits::default()).contains("case.json: "));
    fs::write(&path, b"\xff\xfe{}").expect("written");
    assert!(read(Limits::default()).contains("it is not UTF-8"));
    fs::write(&path, GOOD).expect("written");
    let small = Limits { max_json_bytes: 100, ..Limits::default() };
    assert!(read(small).contains("it is longer than the limit of 100 bytes"));
    let few = Limits { max_elements: 5, ..Limits::default() };
    assert!(
        read(few).contains(
            "node ln, argument input: a tensor of shape [2, 3] has more elements than the limit of 5"
        )
    );
    assert!(Case::read(folder.path(), Limits::default()).is_err());
}

#[test]
fn safetensors_that_lie() {
    let entry = |dtype: &str, shape: &str, offsets: &str| {
        format!(r#"{{"x": {{"dtype": "{dtype}", "shape": {shape}, "data_offsets": {offsets}}}}}"#)
    };
    let open = |bytes: Vec<u8>| SafetensorsSource::new(Cursor::new(bytes));
    for bytes in [
        Vec::new(),
        vec![0; 7],
        vec![0; 8],
        vec![0xff; 16],
        u64::MAX.to_le_bytes().to_vec(),
        [&(1u64 << 40).to_le_bytes()[..], b"{}"].concat(),
        [&99_999_999u64.to_le_bytes()[..], b"{}"].concat(),
        safetensors("{}", &[1]),
        safetensors("[]", &[]),
        safetensors("{", &[]),
        safetensors(&"[".repeat(1_000_000), &[]),
        safetensors(&format!(r#"{{"x": {}}}"#, r#"{"a":"#.repeat(100_000)), &[]),
        safetensors(&entry("F32", "[1]", "[0, 8]"), &[0; 8]),
        safetensors(&entry("F32", "[1]", "[4, 8]"), &[0; 8]),
        safetensors(&entry("F32", "[1]", "[4, 0]"), &[0; 4]),
        safetensors(&entry("F32", "[1099511627776]", "[0, 4398046511104]"), &[0; 4]),
        safetensors(&entry("F32", "[4611686018427387904, 4]", "[0, 0]"), &[]),
        safetensors(&entry("F32", "[-1]", "[0, 4]"), &[0; 4]),
        safetensors(&entry("F32", "[18446744073709551615]", "[0, 18446744073709551615]"), &[0; 4]),
        safetensors(&entry("F33", "[1]", "[0, 4]"), &[0; 4]),
        safetensors(&entry("F4", "[1]", "[0, 1]"), &[0]),
        [&2u64.to_le_bytes()[..], b"\xff\xff"].concat(),
    ] {
        let message = open(bytes.clone()).err().unwrap_or_else(|| panic!("taken: {bytes:?}"));
        assert!(message.len() < 500, "{message}");
    }
    let message =
        |bytes: Vec<u8>, limit| open(bytes).expect("a header").tensor("x", limit).expect_err("refused");
    assert!(
        message(safetensors(&entry("F8_E4M3", "[1]", "[0, 1]"), &[0]), 9).contains("which no op here takes")
    );
    assert!(
        message(safetensors(&entry("C64", "[1]", "[0, 8]"), &[0; 8]), 9).contains("tensor `x` has dtype C64")
    );
    assert!(
        message(safetensors(&entry("U8", "[8]", "[0, 8]"), &[0; 8]), 7)
            .contains("more elements than the limit of 7")
    );
    assert!(message(safetensors(&entry("BOOL", "[1]", "[0, 1]"), &[2]), 9).contains("neither 0 nor 1"));
    assert!(message(safetensors("{}", &[]), 9).contains("there is no tensor `x`; there are: none"));
    // An unused tensor of a dtype that no op takes does no harm.
    let mixed = r#"{"f": {"dtype": "F8_E4M3", "shape": [1], "data_offsets": [0, 1]},
                    "x": {"dtype": "U8", "shape": [1], "data_offsets": [1, 2]}}"#;
    open(safetensors(mixed, &[1, 2])).expect("a header").tensor("x", 9).expect("x is uint8");
}

#[test]
fn a_large_sparse_tensors_file_is_not_read_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let length = 1u64 << 36;
    let header = format!(
        r#"{{"big": {{"dtype": "U8", "shape": [{length}], "data_offsets": [0, {length}]}}, "x": {{"dtype": "U8", "shape": [1], "data_offsets": [{length}, {}]}}}}"#,
        length + 1
    );
    let path = folder.path().join("t.safetensors");
    fs::write(&path, safetensors(&header, &[])).expect("written");
    let file = fs::OpenOptions::new().write(true).open(&path).expect("opened");
    file.set_len(8 + header.len() as u64 + length + 1).expect("the file system has sparse files");
    read_folder(folder.path(), r#""t.safetensors""#).expect("only x is read");
    let text = fs::read_to_string(folder.path().join("case.json")).expect("text").replace("@x", "@big");
    fs::write(folder.path().join("case.json"), text).expect("written");
    let message = Case::read(&folder.path().join("case.json"), Limits::default()).expect_err("refused");
    assert!(message.to_string().contains("tensor `big`"), "{message}");
}
