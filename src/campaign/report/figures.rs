//! The plots, as SVG. Their ink is [`INK`], which the page replaces with its own colour.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::ReportError;
use super::ops::{OpRow, Part};
use super::summary::{Criterion, Growth, Step, Summary};
use crate::campaign::criteria::SORT_THRESHOLD;

/// Colours that colour-blind readers can tell apart, on a light and on a dark ground (after Okabe and Ito, 2008).
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 124, 196),
    RGBColor(224, 130, 0),
    RGBColor(0, 158, 115),
    RGBColor(213, 94, 0),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(150, 130, 30),
    RGBColor(128, 128, 128),
];
/// The threshold's line.
const RED: RGBColor = RGBColor(204, 40, 40);
/// Text, axes and grid.
const INK: RGBColor = RGBColor(0, 0, 0);
const FONT: &str = "sans-serif";
/// Size of all text.
const TEXT: i32 = 16;
/// Narrow enough for a telephone; the page sets as many side by side as fit.
const WIDTH: u32 = 400;

/// Room for the names of ops.
const LABELS: i32 = 146;

type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A plot with what is said about it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Figure {
    /// Name of its file, without the ending.
    pub(super) name: &'static str,
    pub(super) title: String,
    pub(super) caption: String,
    /// The drawing; `None` where there is nothing to draw, which the caption then says.
    pub(super) svg: Option<String>,
}

/// Every figure of a report.
pub(super) fn all(summary: &Summary) -> Result<Vec<Figure>, ReportError> {
    let single = summary.single.is_some();
    let mut figures = vec![differences(&summary.ops, single)?];
    for criterion in Criterion::ALL {
        figures.push(involved(&summary.ops, criterion, single)?);
    }
    figures.push(growth(&summary.growth, false)?);
    figures.push(growth(&summary.growth, true)?);
    Ok(figures)
}

/// Figure 13a: the average difference of each op, in chains and alone.
fn differences(ops: &[(String, OpRow)], single: bool) -> Result<Figure, ReportError> {
    let rows = rows(ops, |part| part.difference);
    let alone = if single { " A dot at 0: it never differs." } else { "" };
    let svg = if rows.iter().any(|(_, values)| values.iter().flatten().any(|v| *v > 0.0)) {
        Some(dots(&rows, single, "mean |a − b| against the first executor", Scale::Logarithmic)?)
    } else {
        None
    };
    Ok(Figure {
        name: "differences",
        title: "Average difference by op".to_owned(),
        caption: match svg {
            Some(_) => format!("Figure 13a of SORT; the red line is its threshold, 1e-3.{alone}"),
            None if rows.iter().any(|(_, values)| values.iter().any(Option::is_some)) => {
                "No result differs from the first executor's.".to_owned()
            }
            None => "Not measured: no two executors returned results to compare.".to_owned(),
        },
        svg,
    })
}

/// Figure 13b: of the executions with an op, the share in which it takes part in what a criterion finds.
fn involved(ops: &[(String, OpRow)], criterion: Criterion, single: bool) -> Result<Figure, ReportError> {
    let at = criterion as usize;
    let rows = rows(ops, |part| {
        let (n, of) = part.involved[at];
        (of > 0).then(|| 100.0 * n as f64 / of as f64)
    });
    let (name, what) = match criterion {
        Criterion::Sort => (
            "involved-sort",
            "A result differs by more than 1e-3, and the op made it or one that led to it (Figure 13b of SORT).",
        ),
        Criterion::AssertClose => {
            ("involved-assert-close", "The chain's outputs are not close by torch.testing's defaults.")
        }
        Criterion::Bound => (
            "involved-bound",
            "The op's own error, on the inputs it had, is beyond what the precision allows.",
        ),
    };
    let measured = rows.iter().any(|(_, values)| values.iter().any(Option::is_some));
    let found = rows.iter().any(|(_, values)| values.iter().flatten().any(|v| *v > 0.0));
    Ok(Figure {
        name,
        title: format!("Involved in what {} finds", criterion.name()),
        caption: match (measured, found) {
            (true, true) => what.to_owned(),
            (true, false) => format!("{what} It finds nothing here."),
            (false, _) => "Not measured: no two executors returned results to compare.".to_owned(),
        },
        svg: if found {
            Some(dots(&rows, single, "% of executions with the op", Scale::Percent)?)
        } else {
            None
        },
    })
}

/// Growth of the accumulated error along chains, a line for each executor.
fn growth(growth: &[Growth], absolute: bool) -> Result<Figure, ReportError> {
    let (name, unit, of): (_, _, fn(&Step) -> f64) = match absolute {
        true => ("growth-absolute", "absolute", |step| step.absolute),
        false => ("growth-ulp", "ulp", |step| step.ulp),
    };
    let svg = if growth.is_empty() { None } else { Some(lines(growth, unit, of)?) };
    Ok(Figure {
        name,
        title: format!("Growth of error along chains, {unit}"),
        caption: match (&svg, absolute) {
            (None, _) => "No chain of several ops was judged.".to_owned(),
            (_, true) => "The same errors, absolute.".to_owned(),
            (_, false) => "Median over the results at this depth of the worst element's accumulated error; elements near 0 weigh heavily.".to_owned(),
        },
        svg,
    })
}

type Row<'a> = (&'a str, [Option<f64>; 2]);

fn rows(ops: &[(String, OpRow)], of: impl Fn(&Part) -> Option<f64>) -> Vec<Row<'_>> {
    ops.iter().map(|(op, row)| (op.as_str(), [of(&row.chains), of(&row.alone)])).collect()
}

#[derive(Clone, Copy, PartialEq)]
enum Scale {
    Logarithmic,
    Percent,
}

/// A row for each op, a dot for each way of testing it, and a line between the two.
fn dots(rows: &[Row<'_>], alone: bool, label: &str, scale: Scale) -> Result<String, ReportError> {
    let positive =
        || rows.iter().flat_map(|(_, values)| values.iter().flatten().copied()).filter(|v| *v > 0.0);
    let top = positive().fold(f64::MIN_POSITIVE, f64::max);
    // A logarithmic axis is drawn over exponents; 0 has a place of its own, left of the smallest.
    let (low, high) = match scale {
        Scale::Logarithmic => {
            let bottom = positive().fold(f64::INFINITY, f64::min);
            (bottom.log10().floor() - 1.0, top.max(SORT_THRESHOLD).log10().ceil() + 0.2)
        }
        Scale::Percent => (0.0, (1.05 * top).max(1.0)),
    };
    let position = |v: f64| match scale {
        Scale::Percent => v,
        Scale::Logarithmic if v > 0.0 => v.log10(),
        Scale::Logarithmic => low,
    };
    let names: &[&str] = if alone { &["in chains", "alone"] } else { &["in chains"] };
    let head = 24;
    let height = head + 24 * rows.len() as i32 + 60;
    svg((WIDTH, height.unsigned_abs()), |canvas| {
        let mut at = LABELS;
        for (i, name) in names.iter().enumerate() {
            mark(canvas, (at, 12), i)?;
            text(canvas, name, (at + 9, 12), HPos::Left)?;
            at += 96;
        }
        let mut chart = ChartBuilder::on(canvas)
            .margin_right(14)
            .margin_top(head)
            .x_label_area_size(46)
            .y_label_area_size(LABELS)
            .build_cartesian_2d(low..high, 0.0..rows.len() as f64)
            .map_err(failed)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(INK.mix(0.15))
            .axis_style(INK.mix(0.4))
            .x_labels(6)
            .y_labels(0)
            .x_desc(label)
            .x_label_formatter(&|x| match scale {
                Scale::Percent => format!("{x:.0}"),
                Scale::Logarithmic if *x < low + 0.5 => "0".to_owned(),
                Scale::Logarithmic => format!("1e{x:.0}"),
            })
            .label_style((FONT, TEXT).into_font().color(&INK))
            .draw()
            .map_err(failed)?;
        let area = chart.plotting_area();
        if scale == Scale::Logarithmic {
            let x = area.map_coordinate(&(SORT_THRESHOLD.log10(), 0.0)).0;
            for y in (head..height - 46).step_by(8) {
                let dash = PathElement::new([(x, y), (x, (y + 4).min(height - 46))], RED.stroke_width(1));
                canvas.draw(&dash).map_err(failed)?;
            }
        }
        for (i, (op, values)) in rows.iter().enumerate() {
            let at = |v: f64| area.map_coordinate(&(position(v), (rows.len() - i) as f64 - 0.5));
            text(canvas, op, (LABELS - 9, at(top).1), HPos::Right)?;
            if let ([Some(chains), Some(single)], true) = (values, alone) {
                let line = PathElement::new([at(*chains), at(*single)], INK.mix(0.35).stroke_width(2));
                canvas.draw(&line).map_err(failed)?;
            }
            for s in (0..names.len()).rev() {
                if let Some(value) = values[s] {
                    mark(canvas, at(value), s)?;
                }
            }
        }
        Ok(())
    })
}

/// The dot of a way of testing: filled in chains, hollow alone.
fn mark(canvas: &Canvas<'_>, at: (i32, i32), series: usize) -> Result<(), ReportError> {
    let colour = COLOURS[series % COLOURS.len()];
    let drawn = match series {
        0 => canvas.draw(&Circle::new(at, 5, colour.filled())),
        _ => canvas.draw(&Circle::new(at, 5, colour.stroke_width(2))),
    };
    drawn.map_err(failed)
}

fn lines(growth: &[Growth], unit: &str, of: fn(&Step) -> f64) -> Result<String, ReportError> {
    let places = growth.iter().map(|g| g.steps.len()).max().unwrap_or(1);
    let positive = || growth.iter().flat_map(|g| &g.steps).map(of).filter(|v| *v > 0.0);
    let low = positive().fold(f64::INFINITY, f64::min).min(1.0).log10().floor();
    let high = positive().fold(f64::MIN_POSITIVE, f64::max).log10().ceil().max(low + 1.0);
    let head = 12 + 18 * growth.len() as i32;
    svg((WIDTH, (head + 290).unsigned_abs()), |canvas| {
        for (i, of) in growth.iter().enumerate() {
            let y = 12 + 18 * i as i32;
            let colour = COLOURS[i % COLOURS.len()];
            canvas.draw(&PathElement::new([(70, y), (86, y)], colour.stroke_width(3))).map_err(failed)?;
            text(canvas, &of.executor, (92, y), HPos::Left)?;
        }
        let mut chart = ChartBuilder::on(canvas)
            .margin_right(14)
            .margin_top(head)
            .x_label_area_size(46)
            .y_label_area_size(66)
            .build_cartesian_2d(0.8..places as f64 + 0.2, low..high)
            .map_err(failed)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(INK.mix(0.15))
            .axis_style(INK.mix(0.4))
            .x_labels(0)
            .y_labels(((high - low) as usize + 1).min(8))
            .x_desc("depth in the chain (1: no node before it)")
            .y_desc(format!("accumulated error, {unit}"))
            .y_label_formatter(&|y| format!("1e{y:.0}"))
            .label_style((FONT, TEXT).into_font().color(&INK))
            .draw()
            .map_err(failed)?;
        let area = chart.plotting_area();
        for place in 1..=places {
            let (x, y) = area.map_coordinate(&(place as f64, low));
            text(canvas, &place.to_string(), (x, y + 12), HPos::Center)?;
        }
        for (i, g) in growth.iter().enumerate() {
            let colour = COLOURS[i % COLOURS.len()];
            let points = g.steps.iter().enumerate().map(|(p, step)| {
                let value = of(step);
                (p as f64 + 1.0, if value > 0.0 { value.log10() } else { low })
            });
            let series = LineSeries::new(points, colour.stroke_width(2)).point_size(3);
            chart.draw_series(series).map_err(failed)?;
        }
        Ok(())
    })
}

fn text(canvas: &Canvas<'_>, words: &str, at: (i32, i32), side: HPos) -> Result<(), ReportError> {
    let style = (FONT, TEXT).into_font().color(&INK).pos(Pos::new(side, VPos::Center));
    canvas.draw(&Text::new(words.to_owned(), at, style)).map_err(failed)
}

/// Three digits.
pub(super) fn short(x: f64) -> String {
    match x.abs() {
        0.0 => "0".to_owned(),
        a if !a.is_finite() => "∞".to_owned(),
        a if (1e-3..1e4).contains(&a) => {
            let digits = (2 - a.log10().floor() as i32).max(0) as usize;
            let text = format!("{x:.digits$}");
            if text.contains('.') {
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            } else {
                text
            }
        }
        _ => format!("{x:.2e}"),
    }
}

/// A multiple: 74,600×.
pub(super) fn times(x: f64) -> String {
    if (1e3..1e9).contains(&x) {
        let digit = 10_f64.powi(x.log10().floor() as i32 - 2);
        format!("{}×", super::tables::grouped(((x / digit).round() * digit) as usize))
    } else {
        format!("{}×", short(x))
    }
}

fn svg(
    size: (u32, u32),
    draw: impl FnOnce(&Canvas<'_>) -> Result<(), ReportError>,
) -> Result<String, ReportError> {
    let mut text = String::new();
    {
        let canvas = SVGBackend::with_string(&mut text, size).into_drawing_area();
        draw(&canvas)?;
        canvas.present().map_err(failed)?;
    }
    Ok(text)
}

/// A drawing for the page: in the page's own ink, and without what only a file of its own needs.
pub(super) fn inline(svg: &str) -> String {
    svg.replace("#000000", "currentColor").replace(r#" xmlns="http://www.w3.org/2000/svg""#, "")
}

/// A drawing for a file of its own: on a white ground.
pub(super) fn file(svg: &str) -> String {
    match svg.split_once('>') {
        Some((head, rest)) => {
            format!("{head}>\n<rect width=\"100%\" height=\"100%\" fill=\"#FFFFFF\"/>{rest}")
        }
        None => svg.to_owned(),
    }
}

fn failed(error: impl std::fmt::Display) -> ReportError {
    ReportError::Figure(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits() {
        let short: Vec<String> = [0.0, 0.5, 12.345, 9999.4, 74607.0, 1.5e-8, f64::INFINITY].map(short).into();
        assert_eq!(short, ["0", "0.5", "12.3", "9999", "7.46e4", "1.50e-8", "∞"]);
        let times: Vec<String> = [0.0128, 44.0, 74607.0, 1.234e12].map(times).into();
        assert_eq!(times, ["0.0128×", "44×", "74,600×", "1.23e12×"]);
    }

    #[test]
    fn an_inline_figure_takes_the_ink_of_the_page_and_a_file_has_a_ground() {
        let svg = svg((10, 10), |canvas| text(canvas, "a < b", (1, 1), HPos::Left)).expect("it is drawn");
        let inline = inline(&svg);
        assert!(!inline.contains("#000000") && !inline.contains("xmlns"), "{inline}");
        assert!(inline.contains("currentColor") && inline.contains("a &lt; b"), "{inline}");
        assert!(file(&svg).contains(r##"fill="#FFFFFF"/>"##) && file(&svg).contains("xmlns"), "{svg}");
    }
}
