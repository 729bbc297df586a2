//! Comparison of IDX datasets with inputs.

use super::compared::{ComparedArrays, Tolerance};
use super::outcome::StepRuns;
use crate::dataset::compression::Compression;
use crate::dataset::time_steps::StepList;
use crate::dataset::vectors::{components_of, put_component};
use crate::error::Result;
use crate::inputs::InputLayout;
use crate::read::dataset::{Query, Readers};
use crate::targets::StoredDataset;
use std::collections::BTreeSet;
use std::ops::Range;

impl ComparedArrays for StoredDataset {
    fn tolerance(&self, field: usize, inputs: &InputLayout) -> (Tolerance, String) {
        let number = self.numbers(field, inputs).and_then(|numbers| numbers.first().copied());
        let field = number.map(|number| &self.dataset.header().fields[number]);
        let name = field.and_then(|field| field.attribute("default_compression")).unwrap_or_default();
        (Tolerance::of(Compression::from_name(name)), name.to_owned())
    }

    fn check_field(&self, field: usize, inputs: &InputLayout) -> Result<(), String> {
        let (header, whole) = (self.dataset.header(), inputs.region(&(0..inputs.rows())));
        let (name, sample) = &inputs.fields[field];
        let of_input = inputs.steps.iter().filter(|(step, _)| step.is_some());
        if let Some((Some(step), _)) = of_input.into_iter().find(|(step, _)| !self.steps.contains(step)) {
            let there = StepList::of(self.steps.iter().copied().flatten());
            return Err(format!("has no time step {step}; available: {there}"));
        }
        if (whole.start, whole.end) != (header.start, header.end) {
            return Err("has other samples than the inputs".to_owned());
        }
        match header.field_index(name) {
            None if self.numbers(field, inputs).is_some() => Ok(()),
            None => Err(format!("has no field {name}")),
            Some(number) if header.fields[number].sample != *sample => {
                Err(format!("has field {name} of a type other than {sample}"))
            }
            Some(_) => Ok(()),
        }
    }

    fn contents(&self, inputs: &InputLayout) -> Vec<(String, StepRuns)> {
        let runs: StepRuns = match self.steps.as_slice() {
            [None] => vec![None],
            steps => StepList::of(steps.iter().copied().flatten()).runs().iter().copied().map(Some).collect(),
        };
        let mut names: Vec<String> = self.dataset.header().fields.iter().map(|field| field.name.clone()).collect();
        // The components of an input count as that input.
        for (field, (name, _)) in inputs.fields.iter().enumerate() {
            for number in self.numbers(field, inputs).into_iter().flatten() {
                names[number].clone_from(name);
            }
        }
        let mut seen = BTreeSet::new();
        names.retain(|name| seen.insert(name.clone()));
        names.into_iter().map(|name| (name, runs.clone())).collect()
    }

    fn read_rows(
        &self,
        field: usize,
        time: Option<u64>,
        rows: &Range<u64>,
        inputs: &InputLayout,
        readers: &Readers<'_>,
    ) -> Result<Vec<u8>> {
        // Their existence was checked before.
        let numbers = self.numbers(field, inputs).unwrap_or_default();
        let region = inputs.region(rows);
        let read = |number: usize| {
            let query = Query { time, start: region.start, end: region.end, ..self.dataset.whole(number) };
            self.dataset.read_by(&query, readers)
        };
        if let [number] = numbers[..] {
            return read(number);
        }
        let (sample, mut out) = (inputs.fields[field].1, Vec::new());
        for (component, number) in numbers.into_iter().enumerate() {
            let values = read(number)?;
            out.resize(values.len() * sample.count, 0);
            put_component(&mut out, sample, component, &values);
        }
        Ok(out)
    }
}

impl StoredDataset {
    /// Returns the field of an input, or the fields of its components.
    fn numbers(&self, field: usize, inputs: &InputLayout) -> Option<Vec<usize>> {
        let (header, (name, sample)) = (self.dataset.header(), &inputs.fields[field]);
        let whole = header.field_index(name).map(|number| vec![number]);
        whole.or_else(|| components_of(header, name, *sample))
    }
}
