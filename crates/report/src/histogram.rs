//! Histograms of sizes: two series of counts side by side, over powers of two.

use crate::quantity;
use crate::run::Bucket;
use crate::svg::{Anchor, COLOURS, Figure, WIDTH};

/// Draws the counts of two series by size, side by side; `None` if there are none.
pub(crate) fn histogram(mut figure: Figure, series: [(&[Bucket], &str); 2]) -> Option<Figure> {
    const HEIGHT: f64 = 150.0;
    const FOOT: f64 = 166.0;
    let exponent = |bucket: &Bucket| bucket.from_len_bytes.checked_ilog2().unwrap_or(0);
    let all = || series.iter().flat_map(|(buckets, _)| *buckets);
    let (first, last) = (all().map(exponent).min()?, all().map(exponent).max()?);
    let most = all().map(|bucket| bucket.count).max().filter(|&most| most > 0)?;
    let step = WIDTH / f64::from(last - first + 1);
    figure.line([0.0, FOOT, WIDTH, FOOT]);
    for (number, (buckets, name)) in series.into_iter().enumerate() {
        for bucket in buckets {
            let width = (step * 0.42).min(40.0);
            let middle = (f64::from(exponent(bucket) - first) + 0.5) * step;
            let x = middle + if number == 0 { -width } else { 0.0 };
            let height = (bucket.count as f64 / most as f64 * HEIGHT).max(1.0);
            let count = quantity::count(bucket.count);
            let what = format!("{name}, {} or more: {count}", quantity::size(bucket.from_len_bytes));
            figure.rectangle([x, FOOT - height, width, height], COLOURS[number], &what);
            if width >= count.len() as f64 * 6.0 {
                figure.text(x + width / 2.0, FOOT - height - 3.0, Anchor::Middle, WIDTH, &count);
            }
        }
    }
    // As many labels as fit; each takes 56 units.
    let every = (56.0 / step).ceil().max(1.0) as u32;
    for at in (first..=last).step_by(every as usize) {
        let label = quantity::size(1 << at).replace(".00", "");
        figure.text((f64::from(at - first) + 0.5) * step, FOOT + 14.0, Anchor::Middle, WIDTH, &label);
    }
    let entries: Vec<(String, &str)> =
        series.iter().zip(COLOURS).map(|((_, name), colour)| ((*name).to_owned(), colour)).collect();
    figure.legend(&entries);
    Some(figure)
}
