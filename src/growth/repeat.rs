//! A case's chain applied to its own output.

use ulpian_spec::case::CaseBuilder;
use ulpian_spec::{Case, CaseError, ValueRef};

/// Why a case cannot be repeated.
#[derive(Debug, thiserror::Error)]
pub enum RepeatError {
    /// More than one output.
    #[error("case {case}: it has {outputs} outputs; a chain is repeated from the only one")]
    Outputs {
        /// The case's name.
        case: String,
        /// How many.
        outputs: usize,
    },
    /// The first node begins with no tensor.
    #[error(
        "case {case}: node {node} has no tensor of the case as its first operand, where its output could go in again"
    )]
    Entry {
        /// The case's name.
        case: String,
        /// The first node.
        node: String,
    },
    /// The output does not fit.
    #[error("case {case}: its output is {output}, what it begins with is {entry}: it cannot go in again")]
    Types {
        /// The case's name.
        case: String,
        /// The output's type.
        output: String,
        /// The type of the first operand.
        entry: String,
    },
    /// The longer case is none.
    #[error(transparent)]
    Case(#[from] CaseError),
}

/// The case's nodes `times` times over: in each but the first, what was the first operand of the first node is the output of the time
/// before, wherever it is used. Node ID becomes `t2_ID` in the second time. Observations and expectations are left out.
///
/// # Errors
/// [`RepeatError`], naming the case.
pub fn repeat(case: &Case, times: usize) -> Result<Case, RepeatError> {
    let name = || case.name.clone();
    let [output] = case.outputs[..] else {
        return Err(RepeatError::Outputs { case: name(), outputs: case.outputs.len() });
    };
    let entry = case.nodes.first().and_then(|node| node.op.operands().first().map(|(_, at)| **at));
    let Some(entry @ ValueRef::Input(_)) = entry else {
        let node = case.nodes.first().map_or_else(String::new, |n| n.id.clone());
        return Err(RepeatError::Entry { case: name(), node });
    };
    let (from, to) = (case.type_of(output), case.type_of(entry));
    if from != to {
        return Err(RepeatError::Types { case: name(), output: from.to_string(), entry: to.to_string() });
    }
    let mut builder = CaseBuilder::new(case.name.clone());
    builder.source(case.source.clone());
    let mut tensors = Vec::with_capacity(case.tensors.len());
    for t in &case.tensors {
        let value = std::sync::Arc::clone(&t.value);
        tensors.push(match t.inline {
            true => builder.inline_tensor(t.name.clone(), value)?,
            false => builder.tensor(t.name.clone(), value)?,
        });
    }
    let length = case.nodes.len();
    let mut fed = None;
    for time in 0..times {
        let moved = |at: ValueRef| match (at, fed) {
            (at, Some(before)) if at == entry => before,
            (ValueRef::Input(i), _) => tensors[i],
            (ValueRef::Node { node, output }, _) => ValueRef::Node { node: node + time * length, output },
        };
        for node in &case.nodes {
            let id = if time == 0 { node.id.clone() } else { format!("t{}_{}", time + 1, node.id) };
            builder.node(id, node.op.clone().map(|_, at| moved(at)))?;
        }
        fed = Some(moved(output));
    }
    if let Some(last) = fed {
        builder.output(last)?;
    }
    Ok(builder.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(nodes: &str, outputs: &str) -> Case {
        let text = format!(
            r#"{{"format": "ulpian-case/1", "name": "block", "nodes": [{nodes}], "outputs": [{outputs}]}}"#
        );
        Case::from_json(&text, "block.json", ulpian_spec::case::Limits::default()).unwrap()
    }

    const X: &str = r#"{"dtype": "float32", "shape": [2], "data": [1, 2]}"#;

    #[test]
    fn the_output_goes_in_again() {
        let block = case(
            &format!(
                r#"{{"id": "a", "op": "relu", "args": {{"input": {X}}}}},
                   {{"id": "b", "op": "mul", "args": {{"input": "%a", "other": {X}}}}}"#
            ),
            r#""b""#,
        );
        let thrice = repeat(&block, 3).unwrap();
        let ids: Vec<&str> = thrice.nodes.iter().map(|n| n.id.as_str()).collect();
        assert_eq!(ids, ["a", "b", "t2_a", "t2_b", "t3_a", "t3_b"]);
        let operands = |node: usize| {
            let list = thrice.nodes[node].op.operands();
            list.into_iter().map(|(_, at)| *at).collect::<Vec<_>>()
        };
        let result = |node| ValueRef::Node { node, output: 0 };
        assert_eq!(operands(2), [result(1)]);
        assert_eq!(operands(5), [result(4), ValueRef::Input(1)]);
        assert_eq!(thrice.outputs, [result(5)]);
        assert_eq!(crate::growth::depths(&thrice), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn what_does_not_fit_is_refused_by_name() {
        let narrower = case(
            r#"{"id": "a", "op": "flatten", "args": {"input": {"dtype": "float32", "shape": [2, 1], "data": [1, 2]}}}"#,
            r#""a""#,
        );
        let error = repeat(&narrower, 2).unwrap_err().to_string();
        assert_eq!(
            error,
            "case block: its output is float32[2], what it begins with is float32[2, 1]: it cannot go in again"
        );
        let two = format!(
            r#"{{"id": "a", "op": "relu", "args": {{"input": {X}}}}}, {{"id": "b", "op": "relu", "args": {{"input": {X}}}}}"#
        );
        assert!(matches!(
            repeat(&case(&two, r#""a", "b""#), 2),
            Err(RepeatError::Outputs { outputs: 2, .. })
        ));
    }
}
