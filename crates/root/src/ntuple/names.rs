//! Names of fields: characters that RNTuples do not permit, and names for the ids of entries.

use super::source::find_ids;
use crate::ids::{NAMES, WHOLE};
use raddle_columns::error::{ColumnsError, Result};
use raddle_columns::schema::{Field, Form, Number, Product, Schema};

/// Name of the layout in messages.
pub(super) const LAYOUT: &str = "an RNTuple";

/// Returns the name of a field in an RNTuple: `_` replaces characters that the specification does not permit, and a
/// colon at the beginning, which would denote a base class.
fn permitted(name: &str) -> String {
    let is_bad = |character: char| character.is_control() || matches!(character, '.' | ' ' | '\\' | '/');
    let bad_to_line = |(number, character): (usize, char)| {
        if is_bad(character) || (number == 0 && character == ':') { '_' } else { character }
    };
    if name.is_empty() { "_".to_owned() } else { name.chars().enumerate().map(bad_to_line).collect() }
}

/// Returns the products with names that an RNTuple permits.
///
/// # Errors
/// If two fields would have the same name.
pub(super) fn named(schema: &Schema) -> Result<Schema> {
    let mut products: Vec<Product> = Vec::with_capacity(schema.products.len());
    let mut names = std::collections::HashSet::new();
    for product in &schema.products {
        let refused = || ColumnsError::Form {
            product: product.name.clone(),
            form: product.form.to_string(),
            layout: LAYOUT,
            needed: "'_' replaces dots, spaces, slashes and control characters in names, so two fields would have the same name; choose one of them",
        };
        let name = permitted(&product.name);
        if !names.insert(name.clone()) {
            return Err(refused());
        }
        let form = named_form(&product.form).ok_or_else(refused)?;
        products.push(Product { name, class: product.class.clone(), form });
    }
    Ok(Schema { products })
}

/// Returns the products that are stored under other names, or that have fields stored under other names, together with
/// the stored names.
pub fn renamed(schema: &Schema) -> Vec<(String, String)> {
    let is_renamed = |product: &&Product| named_form(&product.form).as_ref() != Some(&product.form);
    let stored = |product: &Product| (product.name.clone(), permitted(&product.name));
    schema
        .products
        .iter()
        .filter(|product| permitted(&product.name) != product.name || is_renamed(product))
        .map(stored)
        .collect()
}

/// Returns a form with permitted names; `None` if two names of a record would become equal.
fn named_form(form: &Form) -> Option<Form> {
    Some(match form {
        Form::Number(_) | Form::String | Form::Blob(_) => form.clone(),
        Form::List(content) => Form::list(named_form(content)?),
        Form::Regular { length, content } => Form::Regular { length: *length, content: Box::new(named_form(content)?) },
        Form::Record(fields) => {
            let mut named: Vec<Field> = Vec::with_capacity(fields.len());
            for field in fields {
                let name = permitted(&field.name);
                if named.iter().any(|other| other.name == name) {
                    return None;
                }
                named.push(Field { name, form: named_form(&field.form)? });
            }
            Form::Record(named)
        }
    })
}

/// Returns products for the ids of entries, whose buffers are run, subrun and event. Returns no products if readers
/// take products of `schema` for ids.
///
/// # Errors
/// If all names for ids are taken.
pub(super) fn id_products(schema: &Schema) -> Result<Vec<Product>> {
    if find_ids(schema).is_some() {
        return Ok(Vec::new());
    }
    let field = |name: &str, number| Field { name: name.to_owned(), form: Form::Number(number) };
    let fields = vec![field("run", Number::Uint32), field("lumi", Number::Uint32), field("event", Number::Uint64)];
    let taken = schema.position(WHOLE).map(|number| &schema.products[number]);
    let is_free = NAMES.iter().copied().flatten().all(|name| schema.position(name).is_none());
    match taken {
        None if !is_free => {
            Ok(vec![Product { name: WHOLE.to_owned(), class: String::new(), form: Form::Record(fields) }])
        }
        Some(product) if !is_free || matches!(product.form, Form::Record(_)) => Err(ColumnsError::Form {
            product: product.name.clone(),
            form: product.form.to_string(),
            layout: LAYOUT,
            needed: "its name is needed for the ids of events, which it does not hold; leave it out",
        }),
        _ => {
            let product = |Field { name, form }| Product { name, class: String::new(), form };
            Ok(fields.into_iter().map(product).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(name: &str, form: Form) -> Product {
        Product { name: name.to_owned(), class: String::new(), form }
    }

    #[test]
    fn names_have_no_characters_that_are_not_permitted() {
        for (name, expected) in [
            ("Muon_pt", "Muon_pt"),
            ("jet.pt", "jet_pt"),
            ("a/b c\\d\n", "a_b_c_d_"),
            (":_0", "__0"),
            ("A::b#2", "A::b#2"),
            ("", "_"),
        ] {
            assert_eq!(permitted(name), expected, "{name}");
            let schema = Schema { products: vec![product(name, Form::String)] };
            assert_eq!(renamed(&schema).is_empty(), name == expected, "{name}");
        }
        let number = Form::Number(Number::Int8);
        let two = Schema { products: vec![product("a.b", number.clone()), product("a_b", number.clone())] };
        assert!(named(&two).is_err_and(|error| error.to_string().contains("a_b")));
        let field = |name: &str| Field { name: name.to_owned(), form: number.clone() };
        let inside = Form::list(Form::Record(vec![field("x y"), field("x/y")]));
        assert!(named(&Schema { products: vec![product("a", inside)] }).is_err());
        let inside = Schema { products: vec![product("a", Form::list(Form::Record(vec![field("x y")])))] };
        assert_eq!(renamed(&inside), [("a".to_owned(), "a".to_owned())]);
    }

    #[test]
    fn ids_are_fields_unless_there_are_some() {
        let number = || Form::Number(Number::Uint64);
        let names = |products: Vec<Product>| {
            let products = id_products(&Schema { products })?;
            Ok::<_, ColumnsError>(products.into_iter().map(|product| product.name).collect::<Vec<_>>())
        };
        let of = |all: &[&str]| all.iter().map(|name| product(name, number())).collect::<Vec<_>>();
        assert_eq!(names(of(&["pt"])).unwrap(), ["run", "lumi", "event"]);
        for known in
            [["run", "luminosityBlock", "event"], ["runNumber", "lumiBlock", "eventNumber"], ["Run", "subRun", "Evt"]]
        {
            assert!(names(of(&known)).unwrap().is_empty(), "{known:?}");
            assert_eq!(names(of(&known[1..])).unwrap(), [WHOLE], "{known:?}");
        }
        assert_eq!(names(of(&["run"])).unwrap(), [WHOLE]);
        assert_eq!(names(of(&["EventID"])).unwrap(), ["run", "lumi", "event"]);
        assert!(names(of(&["EventID", "run"])).is_err());
        assert!(names(vec![product("EventID", Form::Record(Vec::new()))]).is_err());
    }
}
