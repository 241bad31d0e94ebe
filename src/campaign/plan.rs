//! What a campaign judges and who is heard, with the digest of every input file.

use std::io::Read;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use ulpian_mining::files;
use ulpian_spec::case::Limits;
use ulpian_spec::{Case, ExecutorId};

use super::CampaignError;
use crate::generation::{Inputs, Recipe, Sources};
use crate::pipeline::Interventions;

/// Everything that decides what the ledger will hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Where the cases come from.
    pub source: Source,
    /// How many there are.
    pub cases: usize,
    /// Who is heard, in order: the others' outputs are compared with the first one's.
    pub executors: Vec<String>,
    /// Seconds that one executor may take for one case.
    pub timeout: f64,
    /// Which switches are thrown to explain an error.
    pub interventions: Interventions,
    /// Seed of whatever an executor draws at random.
    pub seed: u64,
    /// The version of Ulpian.
    pub ulpian: String,
    /// Every file that is read.
    pub files: Vec<InputFile>,
}

/// Where cases come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Source {
    /// Case files.
    Cases(Vec<PathBuf>),
    /// Inputs generated for patterns.
    Generated(Recipe),
}

/// An input file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputFile {
    /// The file, absolute.
    pub path: PathBuf,
    /// SHA-256 of what it holds, in hexadecimal.
    pub sha256: String,
}

/// How a plan's cases are judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Hearing {
    /// Who is heard.
    pub executors: Vec<ExecutorId>,
    /// Seconds that one executor may take for one case.
    pub timeout: f64,
    /// Which switches are thrown.
    pub interventions: Interventions,
    /// Seed of whatever an executor draws at random.
    pub seed: u64,
}

impl Plan {
    /// A plan over these cases, with every path made absolute and every file's digest taken.
    ///
    /// # Errors
    /// [`CampaignError`], naming the file that cannot be read.
    pub fn new(source: Source, hearing: &Hearing) -> Result<Plan, CampaignError> {
        let (source, read, cases) = match source {
            Source::Cases(cases) => {
                let cases = absolute(cases)?;
                let mut read = Vec::new();
                for case in &cases {
                    read.push(case.clone());
                    read.extend(tensors_of(case));
                }
                let count = cases.len();
                (Source::Cases(cases), read, count)
            }
            Source::Generated(mut recipe) => {
                let mut features = Vec::new();
                for source in &recipe.features {
                    match source.is_dir() {
                        true => features.extend(files::find(source, files::FEATURES_SUFFIX)?),
                        false => features.push(source.clone()),
                    }
                }
                recipe.features = absolute(features)?;
                recipe.patterns = absolute(recipe.patterns.into_iter().collect())?.pop();
                let read = recipe.patterns.iter().chain(&recipe.features).cloned().collect();
                let count = recipe.count;
                (Source::Generated(recipe), read, count)
            }
        };
        if cases == 0 {
            return Err(CampaignError::NoCases);
        }
        let digests = read.into_par_iter().map(|path| Ok(InputFile { sha256: digest(&path)?, path }));
        Ok(Plan {
            source,
            cases,
            executors: hearing.executors.iter().map(ToString::to_string).collect(),
            timeout: hearing.timeout,
            interventions: hearing.interventions,
            seed: hearing.seed,
            ulpian: env!("CARGO_PKG_VERSION").to_owned(),
            files: digests.collect::<Result<_, CampaignError>>()?,
        })
    }

    /// Checks that every input file is still what it was.
    ///
    /// # Errors
    /// [`CampaignError::Changed`], or [`CampaignError::Io`] where one cannot be read.
    pub fn check_files(&self) -> Result<(), CampaignError> {
        self.files.par_iter().try_for_each(|file| {
            if digest(&file.path)? != file.sha256 {
                return Err(CampaignError::Changed(file.path.clone()));
            }
            Ok(())
        })
    }

    /// Reads what the inputs are generated from; `None` where the cases are files.
    ///
    /// # Errors
    /// [`CampaignError::Generation`].
    pub fn sources(&self) -> Result<Option<Sources>, CampaignError> {
        match &self.source {
            Source::Cases(_) => Ok(None),
            Source::Generated(recipe) => Ok(Some(Sources::read(recipe.clone())?)),
        }
    }
}

/// The cases of a plan, by number.
#[derive(Debug)]
pub enum Cases<'a> {
    /// Case files.
    Files(&'a [PathBuf]),
    /// Generated inputs.
    Generated(Inputs<'a>),
}

/// One case of a campaign.
#[derive(Debug)]
pub struct Numbered {
    /// Its name: the stem of its file, or the number of its pattern and its own.
    pub name: String,
    /// Its pattern's id, where it was generated for one.
    pub pattern: Option<usize>,
    /// The labels of its pattern.
    pub labels: Option<Vec<String>>,
    /// The case, or why there is none.
    pub case: Result<Case, String>,
}

impl<'a> Cases<'a> {
    /// The cases of a plan, with the [sources](Plan::sources) of its inputs.
    ///
    /// # Errors
    /// [`CampaignError::Generation`] where nothing can be generated.
    pub fn of(plan: &'a Plan, sources: Option<&'a Sources>) -> Result<Cases<'a>, CampaignError> {
        match (&plan.source, sources) {
            (Source::Cases(files), _) => Ok(Cases::Files(files)),
            (Source::Generated(_), Some(sources)) => Ok(Cases::Generated(sources.inputs()?)),
            (Source::Generated(_), None) => Err(CampaignError::NoCases),
        }
    }

    /// Case `number`.
    pub fn make(&self, number: usize) -> Numbered {
        match self {
            Cases::Files(files) => {
                let file = &files[number];
                let case = Case::read(file, Limits::default()).map_err(|e| e.to_string());
                let name = match &case {
                    Ok(case) => case.name.clone(),
                    Err(_) => file.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
                };
                Numbered { name, pattern: None, labels: None, case }
            }
            Cases::Generated(inputs) => {
                let (pattern, index) = inputs.place(number);
                Numbered {
                    name: ulpian_mining::generate::case_name(pattern, index),
                    pattern: Some(pattern.id),
                    labels: Some(pattern.nodes.clone()),
                    case: inputs.make(number),
                }
            }
        }
    }
}

fn absolute(paths: Vec<PathBuf>) -> Result<Vec<PathBuf>, CampaignError> {
    paths
        .into_iter()
        .map(|path| std::path::absolute(&path).map_err(|e| CampaignError::io(&path, e)))
        .collect()
}

/// The tensors file of a case; none where it names none, or is no case: reading it will say so.
fn tensors_of(case: &Path) -> Option<PathBuf> {
    #[derive(Deserialize)]
    struct Probe {
        tensors: Option<String>,
    }
    let file = std::io::BufReader::new(std::fs::File::open(case).ok()?);
    let probe: Probe = serde_json::from_reader(file).ok()?;
    let tensors = case.parent()?.join(probe.tensors?);
    tensors.is_file().then_some(tensors)
}

fn digest(path: &Path) -> Result<String, CampaignError> {
    let io = |e| CampaignError::io(path, e);
    // Opening a pipe waits for its writer, and neither a pipe nor a device can be read again at `resume`.
    if !std::fs::metadata(path).map_err(io)?.is_file() {
        return Err(CampaignError::NoFile(path.to_owned()));
    }
    let mut file = std::fs::File::open(path).map_err(io)?;
    let mut sha = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer).map_err(io)? {
            0 => break,
            n => sha.update(&buffer[..n]),
        }
    }
    Ok(sha.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
