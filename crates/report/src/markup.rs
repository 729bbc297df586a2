//! Markup of the parts of a page: titled parts, lists of facts, tables and figures.
//!
//! Invariant: titles of parts, values and cells are escaped. Names of facts and titles of columns are markup already.

use crate::svg::{Figure, html};

/// Returns a list of names and values; unknown values are left out.
pub(crate) fn facts(facts: &[(&str, Option<String>)]) -> String {
    let facts = facts.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    let items: String =
        facts.map(|(name, value)| format!("<div><dt>{name}</dt><dd>{}</dd></div>", html(value))).collect();
    format!("<dl>{items}</dl>\n")
}

/// Returns a part of the page with its title, which stays with its content in print.
pub(crate) fn part(title: &str, content: &str) -> String {
    format!("<section>\n<h3>{}</h3>\n{content}</section>\n", html(title))
}

/// Returns a table of numbers.
pub(crate) fn table(titles: &[&str], rows: &[Vec<String>]) -> String {
    table_of("numbers", titles, rows)
}

/// Returns a table of plain text.
pub(crate) fn text_table(titles: &[&str], rows: &[Vec<String>]) -> String {
    table_of("texts", titles, rows)
}

fn table_of(class: &str, titles: &[&str], rows: &[Vec<String>]) -> String {
    let head: String = titles.iter().map(|title| format!("<th>{title}</th>")).collect();
    let row = |cells: &Vec<String>| {
        let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", html(cell))).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let body: String = rows.iter().map(row).collect();
    format!(
        "<div class=\"wide\"><table class=\"{class}\">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>\n"
    )
}

/// Returns the HTML of a figure with its title.
pub(crate) fn figure(figure: &Figure) -> String {
    let caption = html(&figure.caption);
    let drawn = format!("<figure>\n<figcaption>{caption}</figcaption>\n{}\n</figure>\n", figure.inline());
    part(&figure.title, &drawn)
}
