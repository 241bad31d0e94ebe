//! Reading a case.

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::names::{Reference, op_kind, reference, split_result_name};
use super::number::shorten;
use super::tensors::{NoTensors, SafetensorsSource, TensorSource, read_inline};
use super::{CASE_FORMAT, Case, CaseBuilder, Limits, ValueRef, json};
use crate::ops::args::{ArgReader, OperandSource};
use crate::{CaseError, HostTensor, Op};

const FIELDS: [&str; 8] = ["format", "name", "source", "tensors", "nodes", "outputs", "observed", "expect"];

impl Case {
    /// Reads and validates a case file and its tensors file; infers the type of every node result.
    ///
    /// # Errors
    /// [`CaseError`], naming the file and the place, for anything that PyTorch would reject or that the format forbids.
    pub fn read(path: &Path, limits: Limits) -> Result<Case, CaseError> {
        let file = path.display().to_string();
        let io = |source| CaseError::Io { file: file.clone(), source };
        let mut bytes = Vec::new();
        let handle = crate::tensors_file::open_regular(path).map_err(io)?;
        handle.take(limits.max_json_bytes.saturating_add(1)).read_to_end(&mut bytes).map_err(io)?;
        if bytes.len() as u64 > limits.max_json_bytes {
            return Err(CaseError::Json {
                file,
                message: format!(
                    "it is longer than the limit of {} bytes; put large tensors into a tensors file",
                    limits.max_json_bytes
                ),
            });
        }
        let text = String::from_utf8(bytes).map_err(|e| CaseError::Json {
            file: file.clone(),
            message: format!("it is not UTF-8: {}", e.utf8_error()),
        })?;
        let folder = path.parent().unwrap_or(Path::new("."));
        read_case(&text, &file, limits, |tensors| {
            SafetensorsSource::open(folder, tensors).map(|source| Box::new(source) as Box<dyn TensorSource>)
        })
    }

    /// Reads a case from JSON text whose tensors are all inline. `file` is used in messages.
    ///
    /// ```
    /// use ulpian_spec::case::Limits;
    /// use ulpian_spec::{Case, ValueRef};
    ///
    /// let text = r#"{
    ///   "format": "ulpian-case/1", "name": "tie",
    ///   "nodes": [{"id": "y", "op": "add", "args": {
    ///     "input": {"dtype": "float16", "shape": [2], "data": [1, "0x1p-24"]},
    ///     "other": 0.5
    ///   }}]
    /// }"#;
    /// let case = Case::from_json(text, "tie.json", Limits::default())?;
    /// assert_eq!(case.nodes[0].types[0].to_string(), "float16[2]");
    /// assert_eq!(case.outputs, [ValueRef::Node { node: 0, output: 0 }]);
    ///
    /// let error = Case::from_json(&text.replace("other", "othr"), "tie.json", Limits::default()).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "tie.json: node y: unknown argument `othr`; add takes input, other, alpha; did you mean `other`?"
    /// );
    /// # Ok::<(), ulpian_spec::CaseError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Case::read`].
    pub fn from_json(text: &str, file: &str, limits: Limits) -> Result<Case, CaseError> {
        read_case(text, file, limits, |_| Err("this case must bring its tensors inline".to_owned()))
    }

    /// Reads a case from JSON text that names its tensors, `"@name"`, in `tensors`. What the text itself says about a
    /// tensors file is passed over.
    ///
    /// # Errors
    /// As [`Case::read`].
    pub fn from_json_with(
        text: &str,
        file: &str,
        tensors: impl TensorSource + 'static,
        limits: Limits,
    ) -> Result<Case, CaseError> {
        let mut tensors = Some(Box::new(tensors) as Box<dyn TensorSource>);
        let mut reader = Reader::new(text, file, limits)?;
        if let Some(tensors) = tensors.take() {
            reader.source = tensors;
        }
        reader.read()
    }
}

fn read_case(
    text: &str,
    file: &str,
    limits: Limits,
    open: impl FnOnce(&str) -> Result<Box<dyn TensorSource>, String>,
) -> Result<Case, CaseError> {
    let mut reader = Reader::new(text, file, limits)?;
    if let Some(raw) = reader.field("tensors") {
        let tensors = json::string(raw).map_err(|e| reader.builder.field("tensors", e))?;
        reader.source = open(&tensors).map_err(|message| CaseError::Tensors {
            file: file.to_owned(),
            tensors: shorten(&tensors),
            message,
        })?;
    }
    reader.read()
}

struct Reader<'t> {
    fields: HashMap<String, &'t RawValue>,
    builder: CaseBuilder,
    source: Box<dyn TensorSource>,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str, file: &str, limits: Limits) -> Result<Reader<'t>, CaseError> {
        let bad = |message: String| CaseError::Json { file: file.to_owned(), message };
        // This checks the syntax of the whole text, whatever its depth, without building anything.
        let raw: &RawValue = serde_json::from_str(text).map_err(|e| bad(format!("not JSON: {e}")))?;
        let fields: HashMap<String, &RawValue> = json::entries(raw).map_err(bad)?.into_iter().collect();
        let string = |key: &str| fields.get(key).map(|raw| json::string(raw));
        match string("format") {
            Some(Ok(format)) if format == CASE_FORMAT => {}
            found => {
                let got = match found {
                    Some(Ok(format)) => format!("`{}`", shorten(&format)),
                    Some(Err(_)) => "no string".to_owned(),
                    None => "none".to_owned(),
                };
                return Err(bad(format!("format: expected `{CASE_FORMAT}`, got {got}")));
            }
        }
        let place = |place: &str, message: String| CaseError::Field {
            file: file.to_owned(),
            place: place.to_owned(),
            message,
        };
        let mut unknown: Vec<&String> = fields.keys().filter(|key| !FIELDS.contains(&key.as_str())).collect();
        unknown.sort_unstable();
        if let Some(key) = unknown.first() {
            let hint = json::suggestion(key, FIELDS);
            return Err(bad(format!(
                "unknown field `{}`; a case has {}{hint}",
                shorten(key),
                FIELDS.join(", ")
            )));
        }
        let name = string("name").unwrap_or_else(|| Err("a case needs one".to_owned()));
        let mut builder = CaseBuilder::new(name.map_err(|e| place("name", e))?);
        builder.file(file).limits(limits);
        Ok(Reader { fields, builder, source: Box::new(NoTensors) })
    }

    /// A top-level field; null counts as absent.
    fn field(&self, name: &str) -> Option<&'t RawValue> {
        self.fields.get(name).copied().filter(|raw| !json::is_null(raw))
    }

    fn read(mut self) -> Result<Case, CaseError> {
        if let Some(raw) = self.field("source") {
            let source = json::string(raw).map_err(|e| self.builder.field("source", e))?;
            self.builder.source(source);
        }
        self.read_nodes()?;
        if let Some(raw) = self.field("outputs") {
            for output in self.list("outputs", raw)? {
                let at = json::string(output).and_then(|name| self.builder.result(&name));
                let at = at.map_err(|e| self.builder.field("outputs", e))?;
                self.builder.output(at)?;
            }
        }
        if let Some(raw) = self.field("observed") {
            for observation in self.list("observed", raw)? {
                self.read_observation(observation)?;
            }
        }
        if let Some(raw) = self.field("expect") {
            let expect = serde_json::from_str(raw.get()).map_err(|e| {
                let text = e.to_string();
                let message = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message);
                self.builder.field("expect", message)
            })?;
            self.builder.expect(expect);
        }
        self.builder.finish()
    }

    fn list(&self, place: &str, raw: &'t RawValue) -> Result<Vec<&'t RawValue>, CaseError> {
        json::elements(raw).map_err(|e| self.builder.field(place, e))
    }

    fn read_nodes(&mut self) -> Result<(), CaseError> {
        let raw = self.field("nodes").ok_or_else(|| self.builder.field("nodes", "a case needs them"))?;
        let mut nodes = Vec::new();
        for (i, raw) in self.list("nodes", raw)?.into_iter().enumerate() {
            nodes.push(RawNode::read(raw).map_err(|e| self.builder.field(format!("nodes[{i}]"), e))?);
        }
        let ids: HashMap<&str, usize> =
            nodes.iter().enumerate().map(|(i, node)| (node.id.as_str(), i)).collect();
        for node in &nodes {
            let kind = op_kind(&node.op)
                .map_err(|e| self.builder.field(format!("node {}", shorten(&node.id)), e))?;
            let mut operands = Operands {
                builder: &mut self.builder,
                source: &mut *self.source,
                node: &node.id,
                later: &|id| ids.contains_key(id).then(|| explain_later(&nodes, &ids, &node.id, id)),
            };
            let parsed = ArgReader::new(kind, node.args, &mut operands)
                .and_then(|mut reader| Op::parse(kind, &mut reader));
            let op = parsed.map_err(|e| self.builder.in_node(&node.id, e))?;
            self.builder.node(node.id.clone(), op)?;
        }
        Ok(())
    }

    fn read_observation(&mut self, raw: &RawValue) -> Result<(), CaseError> {
        let place = format!("observed[{}]", self.builder.observed_len());
        let read = |this: &mut Self| -> Result<(String, ValueRef, Arc<HostTensor>), String> {
            let [executor, node, tensor] = fields_of(raw, "an observation", ["executor", "node", "tensor"])?;
            let executor = json::string(executor).map_err(|e| format!("executor: {e}"))?;
            let node = json::string(node).and_then(|name| this.builder.result(&name));
            let node = node.map_err(|e| format!("node: {e}"))?;
            let tensor = this.observed_tensor(tensor).map_err(|e| format!("tensor: {e}"))?;
            Ok((executor, node, tensor))
        };
        let (executor, at, tensor) = read(self).map_err(|e| self.builder.field(place, e))?;
        self.builder.observe(executor, at, tensor)
    }

    fn observed_tensor(&mut self, raw: &RawValue) -> Result<Arc<HostTensor>, String> {
        if json::is_object(raw) {
            let tensor = Arc::new(read_inline(raw, self.builder.max_elements())?);
            let name = format!("observed.{}", self.builder.observed_len());
            self.builder.push_tensor(name, true, Arc::clone(&tensor));
            return Ok(tensor);
        }
        match reference(raw)? {
            Reference::Node(_) => {
                Err("expected \"@name\" or an inline tensor, got a node's result".to_owned())
            }
            Reference::Tensor(name) => match named(&mut self.builder, &mut *self.source, &name)? {
                ValueRef::Input(i) => Ok(self.builder.value(i)),
                ValueRef::Node { .. } => Err("expected a tensor".to_owned()),
            },
        }
    }
}

/// The tensor of this name, taken from the source at its first use.
fn named(builder: &mut CaseBuilder, source: &mut dyn TensorSource, name: &str) -> Result<ValueRef, String> {
    if let Some(found) = builder.named_tensor(name) {
        return Ok(found);
    }
    let value = source.tensor(name, builder.max_elements())?;
    builder.tensor(name, value).map_err(|e| match e {
        CaseError::Field { message, .. } => message,
        other => other.to_string(),
    })
}

struct RawNode<'t> {
    id: String,
    op: String,
    args: &'t RawValue,
}

impl<'t> RawNode<'t> {
    fn read(raw: &'t RawValue) -> Result<RawNode<'t>, String> {
        let [id, op, args] = fields_of(raw, "a node", ["id", "op", "args"])?;
        let string = |name: &str, raw| json::string(raw).map_err(|e| format!("{name}: {e}"));
        Ok(RawNode { id: string("id", id)?, op: string("op", op)?, args })
    }

    /// The ids of the nodes that the arguments name.
    fn uses(&self) -> Vec<String> {
        let Ok(entries) = json::entries(self.args) else { return Vec::new() };
        let names = entries.into_iter().filter_map(|(_, raw)| match reference(raw) {
            Ok(Reference::Node(name)) => Some(split_result_name(&name).0.to_owned()),
            _ => None,
        });
        names.collect()
    }
}

/// The values of exactly these fields.
fn fields_of<'t, const N: usize>(
    raw: &'t RawValue,
    what: &str,
    names: [&'static str; N],
) -> Result<[&'t RawValue; N], String> {
    let mut values = [None; N];
    for (key, value) in json::entries(raw)? {
        let Some(i) = names.iter().position(|&n| n == key) else {
            return Err(format!(
                "unknown field `{}`; {what} has {}{}",
                shorten(&key),
                names.join(", "),
                json::suggestion(&key, names)
            ));
        };
        values[i] = Some(value);
    }
    match values.iter().position(Option::is_none) {
        Some(i) => Err(format!("{what} needs `{}`", names[i])),
        None => Ok(values.map(|v| v.unwrap_or(raw))),
    }
}

struct Operands<'b> {
    builder: &'b mut CaseBuilder,
    source: &'b mut dyn TensorSource,
    node: &'b str,
    /// What to say about an id of this case that is not an earlier node's.
    later: &'b dyn Fn(&str) -> Option<String>,
}

impl OperandSource for Operands<'_> {
    fn operand(&mut self, argument: &'static str, value: &RawValue) -> Result<ValueRef, String> {
        if json::is_object(value) {
            let tensor = read_inline(value, self.builder.max_elements())?;
            return Ok(self.builder.push_tensor(format!("{}.{argument}", self.node), true, Arc::new(tensor)));
        }
        match reference(value)? {
            Reference::Tensor(name) => named(self.builder, self.source, &name),
            Reference::Node(name) => {
                let id = split_result_name(&name).0;
                if !self.builder.has_node(id)
                    && let Some(message) = (self.later)(id)
                {
                    return Err(message);
                }
                self.builder.result(&name)
            }
        }
    }
}

/// Why `node` may not use `id`, a node that is not before it.
fn explain_later(nodes: &[RawNode<'_>], ids: &HashMap<&str, usize>, node: &str, id: &str) -> String {
    match find_path(nodes, ids, id, node) {
        Some(path) => {
            const SHOWN: usize = 8;
            let mut names: Vec<String> =
                path.iter().take(SHOWN).map(|id| format!("%{}", shorten(id))).collect();
            if path.len() > SHOWN {
                names.push(format!("… ({} nodes in all)", path.len()));
            }
            format!("a cycle: node {} uses {}", shorten(node), names.join(", which uses "))
        }
        None => format!("%{} comes later; a node uses earlier ones only, so list it first", shorten(id)),
    }
}

/// The ids on a way from `from` to `to` along uses, both included.
fn find_path(nodes: &[RawNode<'_>], ids: &HashMap<&str, usize>, from: &str, to: &str) -> Option<Vec<String>> {
    let (&start, &goal) = (ids.get(from)?, ids.get(to)?);
    let mut came_from: HashMap<usize, usize> = HashMap::new();
    let mut seen = HashSet::from([start]);
    let mut pending = vec![start];
    while let Some(at) = pending.pop() {
        if at == goal {
            let mut path = vec![at];
            while let Some(&before) = path.last().and_then(|last| came_from.get(last)) {
                path.push(before);
            }
            return Some(path.into_iter().rev().map(|i| nodes[i].id.clone()).collect());
        }
        for next in nodes[at].uses().iter().filter_map(|id| ids.get(id.as_str())) {
            if seen.insert(*next) {
                came_from.insert(*next, at);
                pending.push(*next);
            }
        }
    }
    None
}
