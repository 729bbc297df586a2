//! Conversion of command-line options to Python keywords: `--scalars stack` becomes `scalars="stack"`, `--skip-bad`
//! becomes `skip_bad=True`.
//!
//! The libraries name options in the form of the command line. Where their messages reach Python, which happens in one
//! place, they are converted. Options and the values they take are those of the requests. Invariant: no other text
//! changes; text in backticks is a command line and is kept, as is anything that is not an option of a request.

use crate::{
    AppendRequest, IndexRequest, MergeRequest, PlanRequest, RechunkRequest, SelectRequest, SplitRequest, VerifyRequest,
};
use raddle_events::{ConvertRequest, EventsMergeRequest, InspectRequest, WriteRequest};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::sync::LazyLock;

/// Options whose keywords have different names, because `for` is reserved in Python and `layout` stands for it.
const RENAMED: [(&str, &str); 2] = [("for", "layout"), ("layout", "layout_rules")];

/// Letters that stand for options in messages, with the names of the options and whether they are flags.
const LETTERS: [(char, &str, bool); 5] = [
    ('c', "compress", false),
    ('f', "force", true),
    ('i', "list", false),
    ('j', "jobs", false),
    ('o', "output", false),
];

/// Options of files and inputs, which calls take as arguments.
const ARGUMENTS: [&str; 3] = ["list", "output", "against"];

/// Options of a request.
struct Options {
    /// Fields with their default values.
    fields: Map<String, Value>,
    /// Whether a field reads a value.
    reads: fn(&str, &str) -> bool,
}

impl Options {
    fn of<R: Default + Serialize + DeserializeOwned>() -> Self {
        let fields = match serde_json::to_value(R::default()) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        let reads = |field: &str, value: &str| {
            let alone = Map::from_iter([(field.to_owned(), Value::from(value))]);
            serde_json::from_value::<R>(Value::Object(alone)).is_ok()
        };
        Self { fields, reads }
    }

    /// Returns whether `value` is one of the words, numbers or sizes that `field` takes, and not just any string.
    fn takes(&self, field: &str, value: &str) -> bool {
        self.fields.contains_key(field) && (self.reads)(field, value) && !(self.reads)(field, "no such word")
    }
}

/// Options of all requests.
static OPTIONS: LazyLock<Vec<Options>> = LazyLock::new(|| {
    vec![
        Options::of::<MergeRequest>(),
        Options::of::<PlanRequest>(),
        Options::of::<RechunkRequest>(),
        Options::of::<SelectRequest>(),
        Options::of::<SplitRequest>(),
        Options::of::<IndexRequest>(),
        Options::of::<AppendRequest>(),
        Options::of::<VerifyRequest>(),
        Options::of::<ConvertRequest>(),
        Options::of::<EventsMergeRequest>(),
        Options::of::<InspectRequest>(),
        Options::of::<WriteRequest>(),
        Options::of::<raddle_idx::request::WriteRequest>(),
        Options::of::<raddle_idx::request::ReadRequest>(),
    ]
});

/// Replaces options in `text` by keywords.
pub fn as_keywords(text: &str) -> String {
    let parts = text.split('`').enumerate();
    // Every other part is in backticks.
    let parts = parts.map(|(number, part)| if number % 2 == 0 { outside_of_backticks(part) } else { part.to_owned() });
    parts.collect::<Vec<_>>().join("`")
}

/// Replaces options in `text` by keywords, except in strings in double quotes, which are values of files.
pub fn beside_values(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, value)) = rest.split_once('"') {
        let mut is_escaped = false;
        let end = value.find(|c: char| {
            let is_end = c == '"' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            is_end
        });
        let (value, behind) = end.map_or((value, ""), |end| value.split_at(end + 1));
        out.extend([as_keywords(before).as_str(), "\"", value]);
        rest = behind;
    }
    out + &as_keywords(rest)
}

fn outside_of_backticks(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('-') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let begins_a_word = out.chars().next_back().is_none_or(|last| last.is_whitespace() || "('\"[/".contains(last));
        // The slash must separate two options and not belong to a path.
        let is_in_a_path = out.ends_with('/') && !before.trim_end_matches('/').ends_with(|c: char| c.is_whitespace());
        match option(from).filter(|_| begins_a_word && !is_in_a_path) {
            Some((keyword, behind)) => {
                out.push_str(&keyword);
                rest = behind;
            }
            None => {
                let dashes = from.len() - from.trim_start_matches('-').len();
                out.push_str(&from[..dashes]);
                rest = &from[dashes..];
            }
        }
    }
    out + rest
}

/// Parses the option at the start of `text`; returns its keyword and the rest of the text.
fn option(text: &str) -> Option<(String, &str)> {
    let (name, letter_is_flag, behind) = if let Some(long) = text.strip_prefix("--") {
        let end = long.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(long.len());
        (long[..end].to_owned(), None, &long[end..])
    } else {
        let mut letters = text[1..].chars();
        let letter = letters.next()?;
        let (_, name, is_flag) = *LETTERS.iter().find(|(known, _, _)| *known == letter)?;
        // `-c` is a letter, `-cold` a word.
        let behind = letters.as_str();
        (
            name.to_owned(),
            Some(is_flag),
            Some(behind).filter(|behind| !behind.starts_with(|c: char| c.is_alphanumeric()))?,
        )
    };
    // The layout of events is one of a few words, and its keyword is not renamed.
    let (next, _) = first_word(behind.trim_start_matches(['=', ' ']));
    let is_kept = name == "layout" && !next.is_empty() && OPTIONS.iter().any(|options| options.takes("layout", next));
    let renamed = RENAMED.iter().find(|(option, _)| *option == name && !is_kept);
    let renamed = renamed.map(|(_, keyword)| (*keyword).to_owned());
    let keyword = renamed.unwrap_or_else(|| name.replace('-', "_"));
    let defaults: Vec<&Value> = OPTIONS.iter().filter_map(|options| options.fields.get(&keyword)).collect();
    if defaults.is_empty() && !ARGUMENTS.contains(&name.as_str()) {
        return None;
    }
    let is_flag = defaults.iter().any(|default| default.is_boolean());
    // A letter determines the command of its option, while a name may be a flag of another command.
    let (takes_nothing, is_letter) = (letter_is_flag.unwrap_or(is_flag), letter_is_flag.is_some());
    // Excludes file names that begin like an option.
    if behind.starts_with(['_', '/'])
        || behind.strip_prefix('.').is_some_and(|next| next.starts_with(char::is_alphanumeric))
    {
        return None;
    }
    // Handles the notation of clap: `--compress <HOW>`, `--preview[=<FOLDER>]`.
    let placeholder = behind.trim_start_matches(['[', '=', ' ']);
    if let Some((_, behind)) = placeholder.strip_prefix('<').and_then(|placeholder| placeholder.split_once('>')) {
        return Some((keyword, behind.trim_start_matches(']')));
    }
    let joined = behind.strip_prefix('=');
    let (word, others) = first_word(joined.or_else(|| behind.strip_prefix(' ')).unwrap_or_default());
    let is_listed = !word.is_empty() && OPTIONS.iter().any(|options| options.takes(&keyword, word));
    let stands_for_a_value = !word.is_empty() && word.chars().all(|c| c.is_ascii_uppercase());
    // Options with a letter are only followed by a value or one of these words.
    let is_value = is_letter && !takes_nothing && !word.is_empty() && !["or", "and", "to"].contains(&word);
    if let Some((value, behind)) = given_value(behind).filter(|_| !takes_nothing) {
        return Some((format!("{keyword}={value}"), behind));
    }
    match word {
        _ if is_value && !stands_for_a_value => Some((format!("{keyword}={word:?}"), others)),
        _ if is_listed || (joined.is_some() && !word.is_empty()) => Some((format!("{keyword}={word:?}"), others)),
        _ if stands_for_a_value && !takes_nothing => Some((format!("{keyword}={word}"), others)),
        _ if takes_nothing => Some((format!("{keyword}=True"), behind)),
        _ => Some((keyword, behind)),
    }
}

/// Splits off a value that cannot be prose, after the blank behind an option: a quoted text, a path, or `NAME=VALUE`.
/// Returns it in quotes, and the rest of the text.
fn given_value(behind: &str) -> Option<(String, &str)> {
    let value = behind.strip_prefix(' ')?;
    if let Some(quote @ ('"' | '\'')) = value.chars().next() {
        let end = value[1..].find(quote)? + 2;
        return Some((value[..end].to_owned(), &value[end..]));
    }
    let end = value.find(|c: char| c.is_whitespace() || ";)'\"".contains(c)).unwrap_or(value.len());
    let value_alone = value[..end].trim_end_matches(['.', ',', ':', '?']);
    let is_certain = value_alone.len() > 1 && (value_alone.starts_with('/') || value_alone.contains('='));
    is_certain.then(|| (format!("{value_alone:?}"), &value[value_alone.len()..]))
}

/// Splits off the first word of `text`, without trailing punctuation; returns the word and the rest.
fn first_word(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| c.is_whitespace() || ",;)'\"".contains(c)).unwrap_or(text.len());
    let word = text[..end].trim_end_matches(['.', ':', '?']);
    text.split_at(word.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_become_keywords() {
        for (text, keywords) in [
            (
                "choose --scalars first (the first input's), or --scalars stack",
                "choose scalars=\"first\" (the first input's), or scalars=\"stack\"",
            ),
            ("leave them out with --skip-bad", "leave them out with skip_bad=True"),
            ("zlib is for --layout rntuple; give none", "zlib is for layout=\"rntuple\"; give none"),
            ("refused (--layout \"/a: compact\"); narrow", "refused (layout_rules=\"/a: compact\"); narrow"),
            ("raise --memory, or use fewer --jobs", "raise memory, or use fewer jobs"),
            ("make smaller chunks (--for random, --chunk)", "make smaller chunks (layout=\"random\", chunk)"),
            ("name another with --preview=FOLDER, or", "name another with preview=\"FOLDER\", or"),
            ("--keys /a/run,/a/evt recreates them", "keys=\"/a/run,/a/evt\" recreates them"),
            ("has no such value (--select id=5..9)", "has no such value (select=\"id=5..9\")"),
            ("(--no-resume starts over)", "(no_resume=True starts over)"),
            ("invalid value 'x' for '--compress <HOW>': no", "invalid value 'x' for 'compress': no"),
            ("'--preview[=<FOLDER>]' cannot be used with '--part <I/N>'", "'preview' cannot be used with 'part'"),
            ("write raw blocks with -c none, or", "write raw blocks with compress=\"none\", or"),
            ("or a list with -i", "or a list with list"),
            ("is not a file name; give -o FILE", "is not a file name; give output=FILE"),
            ("--values stored searches the numbers", "values=\"stored\" searches the numbers"),
        ] {
            assert_eq!(as_keywords(text), keywords, "{text}");
        }
    }

    #[test]
    fn values_are_left() {
        for (text, keywords) in [
            (
                "units = \"m --scalars first\"; --attributes stack keeps each",
                "units = \"m --scalars first\"; attributes=\"stack\" keeps each",
            ),
            ("\"a \\\" --force\" and --force", "\"a \\\" --force\" and force=True"),
            ("--force, then \"an end without a quote --force", "force=True, then \"an end without a quote --force"),
        ] {
            assert_eq!(beside_values(text), keywords, "{text}");
        }
    }

    #[test]
    fn anything_but_an_option_is_left() {
        for text in [
            "runs/--force.h5: not an HDF5 file",
            "--force.h5: not an HDF5 file",
            "run `nccopy -k nc4 IN OUT` or `raddle merge --force`",
            "build it with --features mpi",
            "a - b -- c, well-known, -1",
            "x-ray --",
        ] {
            assert_eq!(as_keywords(text), text);
        }
    }

    /// Finds string literals in a source file, approximately.
    fn literals(source: &str) -> impl Iterator<Item = &str> {
        source.split("#[cfg(test)]").next().unwrap_or_default().split('"').skip(1).step_by(2)
    }

    fn sources(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => sources(&path, found),
                false if path.extension().is_some_and(|ending| ending == "rs") => found.push(path),
                false => {}
            }
        }
    }

    /// Options in messages of the libraries that only the command has: those of tuning, of files as inputs of `raddle
    /// idx`, and of writing through a parallel libhdf5.
    const OF_THE_COMMAND: [&str; 9] = ["as", "cast", "dtype", "into", "io", "scale", "scratch", "shape", "strategy"];

    /// Covers all messages in the sources, not only hints that some test triggers.
    #[test]
    fn no_text_of_the_libraries_names_an_option_in_python() {
        let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut files = Vec::new();
        for name in ["raddle", "merge", "query", "hdf5", "idx", "events", "core", "codec"] {
            sources(&crates.join(name).join("src"), &mut files);
        }
        let (mut translated, mut left) = (0, Vec::new());
        for file in files.iter().filter(|file| !file.ends_with("keywords.rs")) {
            let source = std::fs::read_to_string(file).unwrap();
            for literal in literals(&source).filter(|literal| literal.contains("--") && !literal.contains('\n')) {
                let reported = as_keywords(literal);
                translated += usize::from(reported != literal);
                for part in reported.split('`').step_by(2) {
                    for option in part.split("--").skip(1) {
                        let end = option.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(option.len());
                        // A name that the text formats is converted with the rest of the message.
                        if !(option[..end].is_empty() || OF_THE_COMMAND.contains(&&option[..end])) {
                            left.push(format!("{}: {literal:?} became {reported:?}", file.display()));
                        }
                    }
                }
            }
        }
        assert!(left.is_empty(), "{left:#?}");
        assert!(translated > 60, "{translated} messages name options");
    }
}
