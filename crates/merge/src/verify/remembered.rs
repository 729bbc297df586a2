//! The options of a merge that determine values, recorded in its output for later commands on the same inputs.
//!
//! [`super::record`] is their form in the file. Invariant: with the stored options, the same inputs
//! produce the same values.

use super::record::{Decisions, StoredRecord};
use crate::conventions::ConventionOptions;
use crate::error::{MergeError, Result};
use crate::inputs::selection::Selection;
use crate::options::MergeOptions;
use crate::plan::MergePlan;
use crate::rules::user::UserRule;
use crate::schema::display_path;
use crate::schema::join::AttributePolicy;
use crate::verify::digests::StoredDigests;
use serde_json::Value;

/// Handling of an explicit option that differs from the stored one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnConflict {
    /// Refuse the explicit option.
    Refuse,
    /// Follow the explicit option.
    FollowRequest,
}

/// Returns `options` completed with the stored values of options that were not set.
///
/// # Errors
/// [`MergeError::Contradiction`] if an explicit option differs from the stored one and `on_conflict` is `Refuse`.
pub fn recall(stored: Option<&StoredDigests>, options: &MergeOptions, on_conflict: OnConflict) -> Result<MergeOptions> {
    let mut recalled = options.clone();
    let Some(remembered) = stored.and_then(|stored| stored.remembered.as_ref()) else { return Ok(recalled) };
    let usual = Decisions::default().fields();
    let mut fields = Decisions::of(options).fields();
    for (name, known) in remembered.options.fields() {
        let requested = &fields[&name];
        if *requested == known {
            continue;
        }
        let is_explicit = *requested != usual[&name] || options.explicit.contains(name.as_str());
        if !is_explicit {
            fields.insert(name, known);
        } else if on_conflict == OnConflict::Refuse && known != usual[&name] && !is_check(&name, requested, &known) {
            let [known, requested] = [&known, requested].map(|value| option(&name, value));
            return Err(MergeError::Contradiction { path: options.output.clone(), known, requested });
        }
    }
    Decisions::of_fields(fields).apply(&mut recalled)?;
    Ok(recalled)
}

/// Returns whether an option only refuses more than the stored one does, in which case no value depends on it.
fn is_check(name: &str, requested: &Value, known: &Value) -> bool {
    let is = |value: &Value, word: &str| value.as_str() == Some(word);
    match name {
        "join" => is(requested, "exact"),
        "scalars" => is(requested, "equal") && is(known, "first"),
        "attributes" => is(requested, "error") && is(known, "identical"),
        _ => false,
    }
}

/// Formats a stored value as options of the command.
fn option(name: &str, value: &Value) -> String {
    let name = match name {
        "rules" => "rule".to_owned(),
        name => name.replace('_', "-"),
    };
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Object(rule) => {
            let part = |name: &str| rule.get(name).and_then(Value::as_str).unwrap_or_default();
            format!("'{}: {}'", part("pattern"), part("rule"))
        }
        other => other.to_string(),
    };
    match value {
        Value::Array(values) if values.is_empty() => format!("no --{name}"),
        Value::Array(values) => {
            values.iter().map(|value| format!("--{name} {}", text(value))).collect::<Vec<_>>().join(" ")
        }
        Value::Null | Value::Bool(false) => format!("no --{name}"),
        Value::Bool(true) => format!("--{name}"),
        value => format!("--{name} {}", text(value)),
    }
}

impl StoredRecord {
    /// Returns the record for the output of `plan`; `None` if all options have their defaults. `earlier` is the record
    /// of an existing output.
    pub(crate) fn of_output(plan: &MergePlan, earlier: Option<&StoredDigests>) -> Option<Self> {
        let earlier = earlier.map(|earlier| earlier.remembered.clone().unwrap_or_default());
        let remembered = match earlier.or_else(|| plan.remembered.clone()) {
            Some(earlier) if plan.carried.is_some() => earlier,
            Some(earlier) => {
                let planned = Self::of_plan(plan);
                Self {
                    convention: planned.convention.or(earlier.convention),
                    rules: if planned.rules.is_empty() { earlier.rules } else { planned.rules },
                    options: planned.options.after(&earlier.options),
                }
            }
            None => Self::of_plan(plan),
        };
        (remembered != Self::default()).then_some(remembered)
    }

    /// Removes the options that the record of the only input contains, because the output is a copy of this input and
    /// inherited its record.
    pub(crate) fn forget_done(&mut self, of_input: &Self) {
        self.options = std::mem::take(&mut self.options).without_done(&of_input.options);
    }

    /// Returns whether the objects of this file were selected by the patterns of `selection`.
    pub(crate) fn has_selected(&self, selection: &Selection) -> bool {
        let [include, exclude, _] = selection.patterns();
        selection.is_partial() && self.options.include == include && self.options.exclude == exclude
    }

    /// Returns `requested` completed with this record of an input: the input is merged by the rules that produced it,
    /// unless `requested` overrides them. `kept` are the patterns of `--keep`, which hold for all inputs.
    pub(crate) fn guiding(&self, requested: &ConventionOptions, kept: &[String]) -> ConventionOptions {
        let known = self.options.guides();
        let once = self.options.keep.iter().filter(|pattern| !kept.contains(pattern));
        let once = once.map(|pattern| UserRule { pattern: pattern.clone(), rule: "once".to_owned() });
        ConventionOptions {
            convention: requested.convention.or(known.convention),
            dim: requested.dim.clone().or(known.dim),
            // The last matching rule takes precedence.
            rules: once.chain(known.rules).chain(requested.rules.iter().cloned()).collect(),
            ..requested.clone()
        }
    }

    /// Combines the records of two inputs of one merge. Their rules do not contradict each other.
    pub(crate) fn united(self, other: &Self) -> Self {
        Self { options: other.options.clone().after(&self.options), ..self }
    }

    /// Returns the part that also holds for a merge of this input with others: convention, dimension, rules and
    /// `--keep`.
    pub(crate) fn of_parts(self) -> Self {
        let options =
            Decisions { keep: self.options.keep.clone(), conventions: self.options.guides(), ..Decisions::default() };
        Self { options, ..Self::default() }
    }

    fn of_plan(plan: &MergePlan) -> Self {
        let path = |entry: u32| display_path(&plan.schema.entries[entry as usize].path);
        let rules = plan.rules.iter().filter(|(_, rule)| !rule.is_plain());
        let mut options = Decisions::of(&plan.options);
        if options.attributes == AttributePolicy::Error {
            // This policy decides nothing.
            options.attributes = AttributePolicy::First;
        }
        Self {
            convention: plan.convention,
            rules: rules.map(|(entry, rule)| (path(*entry), rule.describe())).collect(),
            options,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conventions::Choice;
    use crate::conventions::Overlap;
    use crate::schema::join::{Join, ScalarPolicy};

    fn stored(options: Decisions) -> StoredDigests {
        StoredDigests {
            remembered: Some(StoredRecord { options, ..StoredRecord::default() }),
            ..StoredDigests::default()
        }
    }

    fn taken() -> Decisions {
        Decisions {
            scalars: ScalarPolicy::Stack,
            keep: vec!["/bins".to_owned()],
            conventions: ConventionOptions {
                rules: vec![UserRule { pattern: "/first".to_owned(), rule: "starts of rows".to_owned() }],
                overlap: Overlap::Last,
                tolerance: 0.25,
                ..ConventionOptions::default()
            },
            ..Decisions::default()
        }
    }

    #[test]
    fn what_is_left_open_is_as_the_file_decided() {
        let mut options = MergeOptions::new("all.h5");
        options.join.join = Join::Outer;
        let recalled = recall(Some(&stored(taken())), &options, OnConflict::Refuse).unwrap();
        assert_eq!(Decisions::of(&recalled), Decisions { join: Join::Outer, ..taken() });
        let unchanged = recall(None, &options, OnConflict::Refuse).unwrap();
        assert_eq!(Decisions::of(&unchanged), Decisions { join: Join::Outer, ..Decisions::default() });
    }

    #[test]
    fn later_decisions_extend_earlier_ones() {
        let rule = |pattern: &str| UserRule { pattern: pattern.to_owned(), rule: "once".to_owned() };
        let conventions = ConventionOptions { rules: vec![rule("/last")], ..ConventionOptions::default() };
        let include = vec!["/part".to_owned()];
        let later = Decisions { join: Join::Outer, include: include.clone(), conventions, ..Decisions::default() };
        let all = later.clone().after(&taken());
        let rules = [taken().conventions.rules, vec![rule("/last")]].concat();
        let conventions = ConventionOptions { rules, ..taken().conventions };
        assert_eq!(all, Decisions { join: Join::Outer, include, conventions, ..taken() });
        assert_eq!(all.clone().after(&all), all);
        assert_eq!(Decisions::default().after(&later), later);
    }

    #[test]
    fn contradictions_name_both_options() {
        let refused = |options: &MergeOptions| match recall(Some(&stored(taken())), options, OnConflict::Refuse) {
            Err(MergeError::Contradiction { known, requested, .. }) => (known, requested),
            other => panic!("{other:?}"),
        };
        let mut options = MergeOptions::new("all.h5");
        options.join.scalars = ScalarPolicy::First;
        assert_eq!(refused(&options), ("--scalars stack".to_owned(), "--scalars first".to_owned()));
        let followed = recall(Some(&stored(taken())), &options, OnConflict::FollowRequest).unwrap();
        assert_eq!(followed.join.scalars, ScalarPolicy::First);

        let mut options = MergeOptions::new("all.h5");
        options.explicit.insert("scalars");
        assert_eq!(refused(&options).1, "--scalars equal");

        let mut options = MergeOptions::new("all.h5");
        options.selection = Selection::new(&[], &[], &["/a".to_owned(), "/b".to_owned()]).unwrap();
        assert_eq!(refused(&options), ("--keep /bins".to_owned(), "--keep /a --keep /b".to_owned()));

        let mut options = MergeOptions::new("all.h5");
        options.conventions.rules = vec![UserRule { pattern: "/x".to_owned(), rule: "once".to_owned() }];
        assert_eq!(refused(&options), ("--rule '/first: starts of rows'".to_owned(), "--rule '/x: once'".to_owned()));
    }

    /// A newer version may have options that this one does not know; an older one lacks some.
    #[test]
    fn records_of_other_versions_are_read() {
        let text = r#"{"convention":"cf","options":{"scalars":"stack","dim":"time","new":1}}"#;
        let remembered: StoredRecord = serde_json::from_str(text).unwrap();
        assert_eq!(remembered.convention, Some(Choice::Cf));
        assert_eq!((remembered.options.scalars, remembered.options.join), (ScalarPolicy::Stack, Join::Exact));
        assert_eq!(remembered.options.conventions.dim.as_deref(), Some("time"));
        let text = serde_json::to_string(&remembered).unwrap();
        assert_eq!(serde_json::from_str::<StoredRecord>(&text).unwrap(), remembered);
    }
}
