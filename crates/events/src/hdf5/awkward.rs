//! Names of the datasets of a column, and its form as awkward-array writes it.
//!
//! With these, `awkward.from_buffers(form, length, datasets)` makes arrays without a copy: each array is found under the key
//! of its node and what it is to the node, `pt-offsets` or `pt-data`. Invariant: no two arrays have one name, and names are
//! in the order of [`Form::buffers`].

use crate::schema::{Field, Form, Number, Product};
use serde_json::{Value, json};
use std::collections::HashSet;

/// Gives names to arrays.
#[derive(Debug, Default)]
pub(super) struct Names {
    taken: HashSet<String>,
}

/// The arrays of a product, and its form.
pub(super) struct Named {
    /// In the order of [`Form::buffers`].
    pub buffers: Vec<String>,
    /// For awkward-array.
    pub form: Value,
}

impl Names {
    /// Names the arrays of `product`.
    pub fn product(&mut self, product: &Product) -> Named {
        let mut buffers = Vec::new();
        let form = self.node(&product.form, &link_name(&product.name), &mut buffers);
        Named { buffers, form }
    }

    /// A key under which `attribute` is free, the given one if it is.
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

/// Offsets are unsigned in the file; below 2^63, where all are, their bytes are those of the `i64` that awkward-array wants.
fn list(content: Value, key: &str, parameters: Value) -> Value {
    json!({
        "class": "ListOffsetArray", "offsets": "i64", "content": content, "parameters": parameters, "form_key": key,
    })
}

/// The form of all products together.
pub(super) fn record(names: Vec<&str>, contents: Vec<Value>) -> Value {
    json!({ "class": "RecordArray", "fields": names, "contents": contents, "parameters": {}, "form_key": "events" })
}

/// A name as a link can have it: without slashes, and not a dot alone.
pub(super) fn link_name(name: &str) -> String {
    match name {
        "" | "." | ".." => "_".repeat(name.len().max(1)),
        _ => name.replace('/', "_"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(name: &str, form: Form) -> Product {
        Product { name: name.to_owned(), class: String::new(), form }
    }

    #[test]
    fn no_two_arrays_have_one_name() {
        let mut names = Names::default();
        let number = || Form::Number(Number::Int32);
        let nested = product("vv", Form::list(Form::list(number())));
        assert_eq!(names.product(&nested).buffers, ["vv-offsets", "vv.1-offsets", "vv.1-data"]);
        let record = Form::list(Form::Record(vec![Field { name: "px".to_owned(), form: number() }]));
        assert_eq!(names.product(&product("t", record)).buffers, ["t-offsets", "t.px-data"]);
        assert_eq!(names.product(&product("t.px", number())).buffers, ["t.px.1-data"]);
        assert_eq!(names.product(&product("a/b", number())).buffers, ["a_b-data"]);
        assert_eq!(names.product(&product("a_b", number())).buffers, ["a_b.1-data"]);
        assert_eq!(names.product(&product(".", Form::String)).buffers, ["_-offsets", "_-data"]);
    }

    #[test]
    fn names_are_in_the_order_of_buffers() {
        let field = |name: &str, form| Field { name: name.to_owned(), form };
        let inner = Form::Record(vec![
            field("a", Form::Regular { length: 2, content: Box::new(Form::Number(Number::Bool)) }),
            field("b", Form::String),
            field("c", Form::list(Form::list(Form::Number(Number::Float64)))),
        ]);
        let product = product("p", Form::list(inner));
        let named = Names::default().product(&product);
        let kinds: Vec<bool> = named.buffers.iter().map(|name| name.ends_with("-offsets")).collect();
        let expected: Vec<bool> =
            product.form.buffers().iter().map(|buffer| buffer.kind == crate::schema::BufferKind::Offsets).collect();
        assert_eq!(kinds, expected);
    }
}
