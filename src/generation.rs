//! Inputs for mined patterns, from files of patterns and features: what `generate` writes and a campaign runs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use ulpian_mining::generate::{baseline, baseline::Baseline, single_ops};
use ulpian_mining::{Generator, Limits, Records, Unfit, Values, files};
use ulpian_spec::Case;
use ulpian_spec::trace::Pattern;

use crate::records::UnfitPattern;

/// What is to be generated. The same recipe over the same files gives the same inputs, in any order of asking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// The pattern file; `None` with `single_op` stands for every op that was recorded.
    pub patterns: Option<PathBuf>,
    /// Feature files, or folders that are searched for them.
    pub features: Vec<PathBuf>,
    /// Inputs in all, spread evenly over the patterns.
    pub count: usize,
    /// The seed.
    pub seed: u64,
    /// How elements are drawn.
    pub values: Values,
    /// Another method's way, valid or not.
    pub baseline: Option<Baseline>,
    /// Every op alone.
    pub single_op: bool,
    /// Recorded calls with a larger tensor are left out.
    pub max_elements: usize,
}

/// Why nothing can be generated.
#[derive(Debug, thiserror::Error)]
pub enum GenerationError {
    /// A file that cannot be read.
    #[error(transparent)]
    File(#[from] ulpian_mining::Error),
    /// A folder without feature files.
    #[error("{}: no feature file here; `ulpian trace … --out DIR` writes them", .0.display())]
    NoFeatures(PathBuf),
    /// A file without patterns.
    #[error("{}: there is no pattern in it", .0.display())]
    NoPatterns(PathBuf),
    /// Patterns that no recorded call fits.
    #[error("no pattern can be generated for: {0}")]
    NothingFits(String),
}

/// The patterns and records of a recipe.
#[derive(Debug)]
pub struct Sources {
    recipe: Recipe,
    patterns: Vec<Pattern>,
    records: Records,
}

impl Sources {
    /// Reads the recipe's files.
    ///
    /// # Errors
    /// [`GenerationError`], naming the file.
    pub fn read(recipe: Recipe) -> Result<Sources, GenerationError> {
        let mut records = Records::new();
        for source in &recipe.features {
            let found = if source.is_dir() {
                files::find(source, files::FEATURES_SUFFIX)?
            } else {
                vec![source.clone()]
            };
            if found.is_empty() {
                return Err(GenerationError::NoFeatures(source.clone()));
            }
            for file in found {
                let features = files::read_features(&file, Limits::default())?;
                records.add(&features.header.model, features.calls, recipe.max_elements);
            }
        }
        let mut patterns = Vec::new();
        if let Some(file) = &recipe.patterns {
            patterns = files::read_patterns(file, Limits::default())?;
            if patterns.is_empty() {
                return Err(GenerationError::NoPatterns(file.clone()));
            }
        }
        if recipe.single_op {
            let named = |name: &str| patterns.iter().any(|p| p.nodes.iter().any(|n| n == name));
            let ops: Vec<_> =
                records.ops().filter(|op| recipe.patterns.is_none() || named(op.name())).collect();
            patterns = single_ops(ops);
        }
        Ok(Sources { recipe, patterns, records })
    }

    /// The recorded calls.
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// Finds what can be generated.
    ///
    /// # Errors
    /// [`GenerationError::NothingFits`] where no recorded call fits any pattern.
    pub fn inputs(&self) -> Result<Inputs<'_>, GenerationError> {
        let Recipe { values, seed, baseline, .. } = self.recipe;
        let mut inputs =
            Inputs { sources: self, fitting: Vec::new(), generators: BTreeMap::new(), unfit: Vec::new() };
        for pattern in &self.patterns {
            let fit: Result<(), Unfit> = match baseline {
                Some(baseline) => baseline::generate(baseline, pattern, &self.records, seed, 0).map(drop),
                None => Generator::new(pattern, &self.records, values, seed).map(|generator| {
                    inputs.generators.insert(pattern.id, generator);
                }),
            };
            match fit {
                Ok(()) => inputs.fitting.push(pattern),
                Err(why) => inputs.unfit.push(UnfitPattern {
                    pattern: pattern.id,
                    nodes: pattern.nodes.clone(),
                    why: why.to_string(),
                }),
            }
        }
        if inputs.fitting.is_empty() {
            let why = inputs.unfit.first().map_or("there are no patterns", |u| u.why.as_str());
            return Err(GenerationError::NothingFits(why.to_owned()));
        }
        Ok(inputs)
    }
}

/// The inputs of a recipe, by number.
#[derive(Debug)]
pub struct Inputs<'a> {
    sources: &'a Sources,
    fitting: Vec<&'a Pattern>,
    generators: BTreeMap<usize, Generator<'a>>,
    unfit: Vec<UnfitPattern>,
}

impl<'a> Inputs<'a> {
    /// The patterns that have inputs.
    pub fn patterns(&self) -> &[&'a Pattern] {
        &self.fitting
    }

    /// The patterns that have none, and why.
    pub fn unfit(&self) -> &[UnfitPattern] {
        &self.unfit
    }

    /// The pattern of input `number`, and which of the pattern's inputs it is.
    pub fn place(&self, number: usize) -> (&'a Pattern, usize) {
        (self.fitting[number % self.fitting.len()], number / self.fitting.len())
    }

    /// Input `number`, or why PyTorch's rules reject it, which happens with a baseline alone.
    pub fn make(&self, number: usize) -> Result<Case, String> {
        let (pattern, index) = self.place(number);
        let Sources { recipe, records, .. } = self.sources;
        match (self.generators.get(&pattern.id), recipe.baseline) {
            (Some(generator), _) => {
                generator.generate(index).map(|made| made.case).map_err(|e| e.to_string())
            }
            (None, Some(baseline)) => baseline::generate(baseline, pattern, records, recipe.seed, index)
                .map_err(|e| e.to_string())?
                .map_err(|e| e.to_string()),
            (None, None) => Err("no generator was made for this pattern".to_owned()),
        }
    }
}
