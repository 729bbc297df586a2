//! Student's t test of a mean against 0.
//!
//! The incomplete beta function is computed by its continued fraction (Lentz's method) and the logarithm of the gamma
//! function by Lanczos' approximation with g = 7 and nine terms, exact to about 1e-13.

/// Two-sided probability of a mean this far from 0 if the values were drawn around 0: 1 of equal zeros, 0 of equal others.
pub fn p_of_mean(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    if values.len() < 2 {
        return 1.0;
    }
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    // Equal values, but for the rounding of their logarithms.
    if variance.sqrt() <= 1e-12 * mean.abs().max(1e-3) {
        return if mean.abs() <= 1e-12 { 1.0 } else { 0.0 };
    }
    let t_squared = mean * mean * count / variance;
    let freedom = count - 1.0;
    incomplete_beta(freedom / (freedom + t_squared), freedom / 2.0, 0.5).clamp(0.0, 1.0)
}

/// The regularised incomplete beta function.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp();
    // The fraction converges fast on this side only.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(x, a, b) / a
    } else {
        1.0 - front * fraction(1.0 - x, b, a) / b
    }
}

fn fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away_from_0 = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_0(1.0 - (a + b) * x / (a + 1.0));
    let mut result = d;
    // It converges in some square root of a steps: a hundred are enough for ten thousand values.
    for step in 1..=300 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for term in [even, odd] {
            d = 1.0 / away_from_0(1.0 + term * d);
            c = away_from_0(1.0 + term / c);
            change = c * d;
            result *= change;
        }
        if (change - 1.0).abs() < 1e-14 {
            break;
        }
    }
    result
}

/// For arguments of 0.5 and more.
fn ln_gamma(x: f64) -> f64 {
    const TERMS: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let sum: f64 = TERMS[0] + TERMS[1..].iter().zip(1..).map(|(term, i)| term / (x + f64::from(i))).sum::<f64>();
    let t = x + 7.5;
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `2 pt(-t, n - 1)` of R for these t.
    #[test]
    fn probabilities_are_those_of_the_tables() {
        let p = |t: f64, freedom: f64| incomplete_beta(freedom / (freedom + t * t), freedom / 2.0, 0.5);
        // The 97.5 % quantiles of printed tables.
        for (freedom, quantile) in [(1.0, 12.7062), (4.0, 2.776_45), (10.0, 2.228_14), (30.0, 2.042_27)] {
            assert!((p(quantile, freedom) - 0.05).abs() < 2e-6, "{freedom}: {}", p(quantile, freedom));
        }
        // One degree of freedom is Cauchy's distribution: 1/2 at 1.
        assert!((p(1.0, 1.0) - 0.5).abs() < 1e-12);
        assert!((p(0.0, 7.0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn gamma_is_the_factorial() {
        assert!((ln_gamma(5.0) - 24.0_f64.ln()).abs() < 1e-12);
        assert!((ln_gamma(0.5) - std::f64::consts::PI.sqrt().ln()).abs() < 1e-12);
    }

    #[test]
    fn equal_values_are_certain() {
        assert_eq!(p_of_mean(&[0.0; 6]), 1.0);
        assert_eq!(p_of_mean(&[0.7; 6]), 0.0);
        assert_eq!(p_of_mean(&[0.7]), 1.0);
        // Mean 1, standard deviation 1.5811, t = 1.4142 of 4 degrees of freedom.
        let p = p_of_mean(&[-1.0, 0.0, 1.0, 2.0, 3.0]);
        assert!((p - 0.230_2).abs() < 1e-4, "{p}");
    }
}
