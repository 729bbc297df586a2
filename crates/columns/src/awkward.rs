//! Names of the arrays of columns, and the form in which awkward-array describes them.
//!
//! With these, `awkward.from_buffers(form, length, arrays)` builds arrays without a copy. Each array is found under the
//! key of its node and its role there, e.g. `pt-offsets` or `pt-data`. Invariant: names of arrays are unique, and they
//! are in the order of [`Form::buffers`].

use crate::schema::{Field, Form, Number, Schema};
use serde_json::{Value, json};
use std::collections::HashSet;

/// Products as an awkward-array form.
#[derive(Debug, Clone)]
pub struct AwkwardForm {
    /// Form of a record of all products, as JSON.
    pub form: String,
    /// Names of the arrays of each product, in the order of [`Form::buffers`].
    pub buffers: Vec<Vec<String>>,
}

impl AwkwardForm {
    /// Describes all products of a schema.
    pub fn of(schema: &Schema) -> Self {
        let mut names = Names::default();
        let (mut buffers, mut contents) = (Vec::new(), Vec::new());
        for product in &schema.products {
            let mut names_of_arrays = Vec::new();
            contents.push(names.node(&product.form, &link_name(&product.name), &mut names_of_arrays));
            buffers.push(names_of_arrays);
        }
        let fields: Vec<&str> = schema.products.iter().map(|product| product.name.as_str()).collect();
        let form = json!({
            "class": "RecordArray", "fields": fields, "contents": contents, "parameters": {}, "form_key": "events",
        });
        Self { form: form.to_string(), buffers }
    }
}

/// Generator of unique array names.
#[derive(Debug, Default)]
struct Names {
    taken: HashSet<String>,
}

impl Names {
    /// Returns a key under which `attribute` is free: `key` itself if possible.
    fn take(&mut self, key: &str, attribute: &str, buffers: &mut Vec<String>) -> String {
        let mut candidate = key.to_owned();
        let mut number = 0;
        while !self.taken.insert(format!("{candidate}-{attribute}")) {
            number += 1;
            candidate = format!("{key}.{number}");
        }
        buffers.push(format!("{candidate}-{attribute}"));
        candidate
    }

    fn node(&mut self, form: &Form, key: &str, buffers: &mut Vec<String>) -> Value {
        match form {
            Form::Number(number) => self.numbers(*number, key, json!({}), buffers),
            Form::Regular { length, content } => {
                let content = self.node(content, key, buffers);
                json!({
                    "class": "RegularArray", "size": length, "content": content, "parameters": {}, "form_key": key,
                })
            }
            Form::List(content) => {
                let key = self.take(key, "offsets", buffers);
                let content = self.node(content, &key, buffers);
                list(content, &key, json!({}))
            }
            Form::String => self.bytes("string", "char", key, buffers),
            Form::Blob(_) => self.bytes("bytestring", "byte", key, buffers),
            Form::Record(fields) => {
                let mut contents = Vec::with_capacity(fields.len());
                for Field { name, form } in fields {
                    contents.push(self.node(form, &format!("{key}.{}", link_name(name)), buffers));
                }
                let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
                json!({
                    "class": "RecordArray", "fields": names, "contents": contents, "parameters": {}, "form_key": key,
                })
            }
        }
    }

    fn bytes(&mut self, outer: &str, inner: &str, key: &str, buffers: &mut Vec<String>) -> Value {
        let key = self.take(key, "offsets", buffers);
        let content = self.numbers(Number::Uint8, &key, json!({ "__array__": inner }), buffers);
        list(content, &key, json!({ "__array__": outer }))
    }

    fn numbers(&mut self, number: Number, key: &str, parameters: Value, buffers: &mut Vec<String>) -> Value {
        let key = self.take(key, "data", buffers);
        json!({
            "class": "NumpyArray", "primitive": number.name(), "inner_shape": [], "parameters": parameters,
            "form_key": key,
        })
    }
}

/// Builds the form of a list. Offsets are unsigned in the file; all are below 2^63, so their bytes are also those of
/// the `i64` that awkward-array expects.
fn list(content: Value, key: &str, parameters: Value) -> Value {
    json!({
        "class": "ListOffsetArray", "offsets": "i64", "content": content, "parameters": parameters, "form_key": key,
    })
}

/// Turns a name into a valid link name: without slashes, and not a lone dot.
pub fn link_name(name: &str) -> String {
    match name {
        "" | "." | ".." => "_".repeat(name.len().max(1)),
        _ => name.replace('/', "_"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Product;

    fn product(name: &str, form: Form) -> Product {
        Product { name: name.to_owned(), class: String::new(), form }
    }

    /// Returns the array names of each product, from pairs of a product's name and form.
    fn buffers<const N: usize>(products: [(&str, Form); N]) -> [Vec<String>; N] {
        let products = products.map(|(name, form)| product(name, form)).to_vec();
        AwkwardForm::of(&Schema { products }).buffers.try_into().unwrap()
    }

    #[test]
    fn no_two_arrays_have_one_name() {
        let number = || Form::Number(Number::Int32);
        let record = Form::list(Form::Record(vec![Field { name: "px".to_owned(), form: number() }]));
        let [nested, tracks, dotted, slashed, underscored, dot] = buffers([
            ("vv", Form::list(Form::list(number()))),
            ("t", record),
            ("t.px", number()),
            ("a/b", number()),
            ("a_b", number()),
            (".", Form::String),
        ]);
        assert_eq!(nested, ["vv-offsets", "vv.1-offsets", "vv.1-data"]);
        assert_eq!(tracks, ["t-offsets", "t.px-data"]);
        assert_eq!(dotted, ["t.px.1-data"]);
        assert_eq!([slashed, underscored], [["a_b-data"], ["a_b.1-data"]]);
        assert_eq!(dot, ["_-offsets", "_-data"]);
    }

    #[test]
    fn names_are_in_the_order_of_buffers() {
        let field = |name: &str, form| Field { name: name.to_owned(), form };
        let inner = Form::Record(vec![
            field("a", Form::Regular { length: 2, content: Box::new(Form::Number(Number::Bool)) }),
            field("b", Form::String),
            field("c", Form::list(Form::list(Form::Number(Number::Float64)))),
        ]);
        let form = Form::list(inner);
        let [named] = buffers([("p", form.clone())]);
        let kinds: Vec<bool> = named.iter().map(|name| name.ends_with("-offsets")).collect();
        let expected: Vec<bool> =
            form.buffers().iter().map(|buffer| buffer.kind == crate::schema::BufferKind::Offsets).collect();
        assert_eq!(kinds, expected);
    }
}
