//! Figures as SVG, limited to the rectangles, labels and lines needed here.
//!
//! Figures have a width at which a phone shows them without shrinking the text. Labels and lines use the page's
//! colours; a separate figure file contains light and dark colours.

use crate::escape;
use std::fmt::Write;

/// Width of all figures; letters are 12 units high. 400 units fit a phone's 360 to 430 points.
pub const WIDTH: f64 = 400.0;
/// Height of text.
pub const LETTER: f64 = 12.0;
/// Mean width of a letter of a wide sans-serif font (DejaVu's) at that height; text in narrower fonts is cut earlier
/// than necessary.
const LETTER_WIDTH: f64 = 7.2;

/// Colours that colour-blind readers can distinguish, on white and on black (after Okabe and Ito, and Tol).
pub const COLOURS: [&str; 11] = [
    "#4477aa", "#ee8866", "#44bb99", "#aa4499", "#ddaa33", "#77aadd", "#cc3311", "#229944", "#999933", "#ee99aa",
    "#888888",
];

/// A figure, drawn as SVG.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Short name, used for files and links.
    pub name: String,
    /// Title of the figure.
    pub title: String,
    /// Description in a sentence or two.
    pub caption: String,
    height: f64,
    body: String,
}

/// Alignment of a label relative to its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// The label begins there.
    Start,
    /// The label is centred there.
    Middle,
    /// The label ends there.
    End,
}

impl Figure {
    /// Creates an empty figure.
    pub fn new(name: &str, title: &str, caption: String) -> Self {
        Self { name: name.to_owned(), title: title.to_owned(), caption, height: 0.0, body: String::new() }
    }

    /// Adds a rectangle with the tooltip `what`.
    pub fn rectangle(&mut self, [x, y, width, height]: [f64; 4], colour: &str, what: &str) {
        self.height = self.height.max(y + height);
        let what = html(what);
        let _ = write!(
            self.body,
            "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{:.2}\" height=\"{:.2}\" fill=\"{colour}\"><title>{what}</title></rect>",
            width.max(0.0),
            height.max(0.0)
        );
    }

    /// Adds a label with its baseline at `y`, cut to the width `room`.
    pub fn text(&mut self, x: f64, y: f64, anchor: Anchor, room: f64, text: &str) {
        self.coloured_text([x, y], anchor, room, text, "currentColor");
    }

    /// Adds a label in another colour than the page's.
    pub fn coloured_text(&mut self, [x, y]: [f64; 2], anchor: Anchor, room: f64, text: &str, colour: &str) {
        self.height = self.height.max(y + 4.0);
        let text = fit(text, room);
        let (x, anchor) = match anchor {
            Anchor::Start => (x, "start"),
            // As close as possible without leaving the figure.
            Anchor::Middle => {
                let half = (LETTER_WIDTH * text.chars().count() as f64 / 2.0).min(WIDTH / 2.0);
                (x.clamp(half, WIDTH - half), "middle")
            }
            Anchor::End => (x, "end"),
        };
        let text = html(&text);
        let _ = write!(
            self.body,
            "<text x=\"{x:.2}\" y=\"{y:.2}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{text}</text>"
        );
    }

    /// Adds a thin line.
    pub fn line(&mut self, [x1, y1, x2, y2]: [f64; 4]) {
        self.height = self.height.max(y1.max(y2));
        let _ = write!(
            self.body,
            "<line x1=\"{x1:.2}\" y1=\"{y1:.2}\" x2=\"{x2:.2}\" y2=\"{y2:.2}\" stroke=\"currentColor\" stroke-opacity=\"0.25\"/>"
        );
    }

    /// Adds a coloured line through points, with the tooltip `what`.
    pub fn stroke(&mut self, points: &[[f64; 2]], width: f64, colour: &str, what: &str) {
        self.height = points.iter().fold(self.height, |height, [_, y]| height.max(*y));
        let points: Vec<String> = points.iter().map(|[x, y]| format!("{x:.2},{y:.2}")).collect();
        let _ = write!(
            self.body,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"><title>{}</title></polyline>",
            points.join(" "),
            html(what)
        );
    }

    /// Adds a legend at the bottom, on as many lines as necessary.
    pub fn legend(&mut self, entries: &[(String, &str)]) {
        let (mut x, mut y) = (0.0, self.height + 8.0);
        for (name, colour) in entries {
            let width = 18.0 + name.chars().count() as f64 * LETTER_WIDTH + 8.0;
            if x + width > WIDTH {
                (x, y) = (0.0, y + 18.0);
            }
            self.rectangle([x, y, 12.0, 12.0], colour, name);
            self.text(x + 18.0, y + 10.5, Anchor::Start, WIDTH, name);
            x += width;
        }
    }

    /// Returns the height in units.
    pub fn height(&self) -> f64 {
        self.height + 4.0
    }

    /// Returns the SVG element, for a page.
    pub fn inline(&self) -> String {
        self.element("", "")
    }

    /// Returns a whole SVG file, with a title and colours.
    pub fn file(&self) -> String {
        let style = "<style>svg{color:#1b1f24;background:#fff}\
                     @media(prefers-color-scheme:dark){svg{color:#e6e6e6;background:#15181c}}</style>";
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n",
            self.element(" xmlns=\"http://www.w3.org/2000/svg\"", style)
        )
    }

    fn element(&self, attributes: &str, head: &str) -> String {
        let (title, caption) = (html(&self.title), html(&self.caption));
        let height = self.height();
        format!(
            "<svg{attributes} viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" font-family=\"system-ui, sans-serif\" \
             font-size=\"{LETTER}\">{head}<title>{title}</title><desc>{caption}</desc>{}</svg>",
            self.body
        )
    }
}

/// Cuts `text` to `room`, removing the beginning of a path first, because names differ at their ends.
fn fit(text: &str, room: f64) -> String {
    let text = escape::text(text);
    let most = (room / LETTER_WIDTH) as usize;
    let count = text.chars().count();
    if count <= most {
        return text.into_owned();
    }
    if most < 3 {
        return String::new();
    }
    format!("…{}", text.chars().skip(count + 1 - most).collect::<String>())
}

/// Escapes `text` for HTML and SVG, including control and invisible characters.
pub fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in escape::text(text).chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_place() {
        let mut figure = Figure::new("x", "</svg><script>", String::new());
        figure.text(0.0, 10.0, Anchor::Start, 400.0, "a<b>&\"'\u{202e}");
        figure.rectangle([0.0, 0.0, 1.0, 1.0], COLOURS[0], "</title>");
        figure.stroke(&[[0.0, 1.0], [2.0, 3.0]], 2.0, COLOURS[0], "</polyline>");
        let text = figure.inline();
        assert!(text.contains("points=\"0.00,1.00 2.00,3.00\"") && text.matches("</polyline>").count() == 1, "{text}");
        assert!(text.contains("a&lt;b&gt;&amp;&quot;&#39;\\u{202e}"), "{text}");
        assert_eq!(text.matches("</title>").count(), 3);
        assert!(!text.contains("<script"));
    }

    #[test]
    fn long_names_keep_their_ends_and_tiny_room_shows_none() {
        assert_eq!(fit("/a/long/path/to/energy", 72.0), "…to/energy");
        assert_eq!(fit("/a/long/path", 10.0), "");
    }

    #[test]
    fn labels_at_the_sides_stay_in_the_figure() {
        let mut figure = Figure::new("x", "x", String::new());
        for x in [0.0, 200.0, WIDTH] {
            figure.text(x, 10.0, Anchor::Middle, 100.0, "0.5 s");
        }
        let half = LETTER_WIDTH * 2.5;
        for x in [half, 200.0, WIDTH - half] {
            assert!(figure.file().contains(&format!("<text x=\"{x:.2}\"")), "{}", figure.file());
        }
    }

    #[test]
    fn a_figure_is_as_high_as_what_is_in_it() {
        let mut figure = Figure::new("x", "x", String::new());
        figure.rectangle([0.0, 90.0, 10.0, 10.0], COLOURS[0], "x");
        assert!(figure.file().contains("viewBox=\"0 0 400 104\""));
        figure.legend(&[("a".to_owned(), COLOURS[0]), ("b".repeat(60), COLOURS[1])]);
        assert!(figure.file().contains("viewBox=\"0 0 400 144\""), "{}", figure.file());
    }
}
