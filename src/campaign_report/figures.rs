//! The plots, as SVG.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::ReportError;
use super::summary::{Depth, OpRow, Shown};
use crate::campaign::rows::NodeRow;

/// Colours that colour-blind readers can tell apart (Okabe and Ito, 2008), the grey last.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(213, 94, 0),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(140, 120, 20),
    RGBColor(120, 120, 120),
];
const INK: RGBColor = RGBColor(40, 40, 40);
const FONT: &str = "sans-serif";

type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A group of bars for each op: the average difference in chains and alone, on a logarithmic scale (Figure 13a).
pub(super) fn differences(ops: &[(String, OpRow)]) -> Result<String, ReportError> {
    let bars: Vec<(&str, Vec<Option<f64>>)> =
        ops.iter().map(|(op, row)| (op.as_str(), row.difference.to_vec())).collect();
    bar_chart(&bars, &["in chains", "alone"], "mean |a - b|", true)
}

/// The share of executions in which an op takes part that SORT's criterion and the bound find (Figure 13b).
pub(super) fn involved(ops: &[(String, OpRow)]) -> Result<String, ReportError> {
    let share = |n: usize, all: usize| (all > 0).then(|| 100.0 * n as f64 / all as f64);
    let bars: Vec<(&str, Vec<Option<f64>>)> = ops
        .iter()
        .map(|(op, row)| (op.as_str(), row.involved.iter().map(|&n| share(n, row.executions)).collect()))
        .collect();
    bar_chart(&bars, &["sort", "assert_close", "bound"], "% of executions", false)
}

fn bar_chart(
    bars: &[(&str, Vec<Option<f64>>)],
    series: &[&str],
    label: &str,
    logarithmic: bool,
) -> Result<String, ReportError> {
    let values = || bars.iter().flat_map(|(_, values)| values.iter().flatten().copied()).filter(|v| *v > 0.0);
    let top = values().fold(f64::MIN_POSITIVE, f64::max);
    let bottom = values().fold(f64::INFINITY, f64::min).min(top);
    // A logarithmic axis is drawn over exponents, whole decades.
    let scale = |v: f64| if logarithmic { v.log10() } else { v };
    let (low, high) = if logarithmic {
        (bottom.log10().floor() - 1.0, top.log10().ceil().max(bottom.log10().floor()))
    } else {
        (0.0, (1.1 * top).max(1e-9))
    };
    svg((900, 420), |canvas| {
        let mut chart = ChartBuilder::on(canvas)
            .margin(12)
            .x_label_area_size(110)
            .y_label_area_size(70)
            .build_cartesian_2d(0.0..bars.len() as f64, low..high)
            .map_err(failed)?;
        let name = |x: &f64| bars.get(*x as usize).map_or_else(String::new, |(op, _)| (*op).to_owned());
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(0)
            .y_labels(if logarithmic { (high - low) as usize + 1 } else { 8 })
            .y_desc(label)
            .y_label_formatter(&|y| if logarithmic { format!("1e{y:.0}") } else { format!("{y:.0}") })
            .label_style((FONT, 14).into_font().color(&INK))
            .draw()
            .map_err(failed)?;
        let width = 0.8 / series.len() as f64;
        for (s, title) in series.iter().enumerate() {
            let colour = COLOURS[s % COLOURS.len()];
            let rectangles = bars.iter().enumerate().filter_map(|(i, (_, values))| {
                let value = values.get(s).copied().flatten().filter(|v| *v > 0.0)?;
                let left = i as f64 + 0.1 + width * s as f64;
                Some(Rectangle::new([(left, low), (left + 0.92 * width, scale(value))], colour.filled()))
            });
            chart
                .draw_series(rectangles)
                .map_err(failed)?
                .label(*title)
                .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 14, y + 5)], colour.filled()));
        }
        legend(&mut chart)?;
        let area = chart.plotting_area();
        let style = (FONT, 14).into_font().transform(FontTransform::Rotate270).color(&INK);
        let style = style.pos(Pos::new(HPos::Right, VPos::Center));
        for i in 0..bars.len() {
            let (x, y) = area.map_coordinate(&(i as f64 + 0.5, low));
            canvas.draw(&Text::new(name(&(i as f64)), (x, y + 8), style.clone())).map_err(failed)?;
        }
        Ok(())
    })
}

/// Median accumulated error by place in the chain, a line for each executor.
pub(super) fn growth(depths: &[Depth]) -> Result<String, ReportError> {
    let places = depths.iter().map(|d| d.medians.len()).max().unwrap_or(1).max(2);
    let top = depths.iter().flat_map(|d| &d.medians).copied().fold(1.0, f64::max);
    svg((900, 420), |canvas| {
        let mut chart = ChartBuilder::on(canvas)
            .margin(12)
            .x_label_area_size(46)
            .y_label_area_size(70)
            .build_cartesian_2d(1.0..places as f64, (0.05..2.0 * top).log_scale())
            .map_err(failed)?;
        chart
            .configure_mesh()
            .x_labels(places)
            .x_desc("node of the chain")
            .y_desc("accumulated error, ulp (median)")
            .x_label_formatter(&|x| format!("{x:.0}"))
            .y_label_formatter(&|y| format!("{y}"))
            .label_style((FONT, 14).into_font().color(&INK))
            .draw()
            .map_err(failed)?;
        for (i, depth) in depths.iter().enumerate() {
            let colour = COLOURS[i % COLOURS.len()];
            let points: Vec<(f64, f64)> =
                depth.medians.iter().enumerate().map(|(p, &ulp)| (p as f64 + 1.0, ulp.max(0.05))).collect();
            chart
                .draw_series(LineSeries::new(points, colour.stroke_width(2)).point_size(3))
                .map_err(failed)?
                .label(depth.executor.clone())
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 14, y)], colour.stroke_width(2)));
        }
        legend(&mut chart)
    })
}

fn legend<'a, D, C>(chart: &mut ChartContext<'a, D, C>) -> Result<(), ReportError>
where
    D: DrawingBackend + 'a,
    C: CoordTranslate,
{
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.85))
        .border_style(INK.mix(0.3))
        .label_font((FONT, 14).into_font().color(&INK))
        .draw()
        .map_err(failed)
}

const BOX: (i32, i32) = (168, 62);
const GAP: (i32, i32) = (46, 18);

/// The pattern of a finding, left to right along the data flow (Figure 14): white where the result is correctly rounded, yellow where
/// it carries an error that is allowed, red where the error is beyond what the precision allows.
pub(super) fn pattern(shown: &Shown) -> Result<String, ReportError> {
    let nodes: Vec<&NodeRow> = shown.nodes.iter().filter(|n| !n.node.contains('.')).collect();
    let position = |id: &str| nodes.iter().position(|n| n.node == id);
    let edges: Vec<(usize, usize)> = shown
        .edges
        .iter()
        .filter_map(|(from, to, _)| {
            let from = from.split('.').next().unwrap_or(from);
            Some((position(from)?, position(to)?)).filter(|(from, to)| from < to)
        })
        .collect();
    let mut column = vec![0_i32; nodes.len()];
    for to in 0..nodes.len() {
        let before = edges.iter().filter(|e| e.1 == to).map(|e| column[e.0] + 1);
        column[to] = before.max().unwrap_or(0);
    }
    let row: Vec<i32> =
        (0..nodes.len()).map(|v| (0..v).filter(|&u| column[u] == column[v]).count() as i32).collect();
    let columns = column.iter().max().map_or(1, |c| c + 1);
    let rows = row.iter().max().map_or(1, |r| r + 1);
    let size = (columns * (BOX.0 + GAP.0), rows * (BOX.1 + GAP.1));
    let corner = |v: usize| (GAP.0 / 2 + column[v] * (BOX.0 + GAP.0), GAP.1 / 2 + row[v] * (BOX.1 + GAP.1));
    svg((size.0.unsigned_abs(), size.1.unsigned_abs()), |canvas| {
        for &(from, to) in &edges {
            let ((x0, y0), (x1, y1)) = (corner(from), corner(to));
            let (start, end) = ((x0 + BOX.0, y0 + BOX.1 / 2), (x1, y1 + BOX.1 / 2));
            canvas.draw(&PathElement::new([start, end], INK.stroke_width(1))).map_err(failed)?;
            let head = [end, (end.0 - 8, end.1 - 4), (end.0 - 8, end.1 + 4)];
            canvas.draw(&Polygon::new(head, INK.filled())).map_err(failed)?;
        }
        for (v, node) in nodes.iter().enumerate() {
            let (x, y) = corner(v);
            let frame = [(x, y), (x + BOX.0, y + BOX.1)];
            canvas.draw(&Rectangle::new(frame, colour(node).filled())).map_err(failed)?;
            canvas.draw(&Rectangle::new(frame, INK.stroke_width(1))).map_err(failed)?;
            let lines = [
                (node.node.clone(), 15),
                (format!("local {}", ulp(node.local_ulp)), 13),
                (format!("accumulated {}", ulp(node.accumulated_ulp)), 13),
            ];
            for (i, (text, size)) in lines.into_iter().enumerate() {
                let style = (FONT, size).into_font().color(&INK);
                let at = (x + 8, y + 8 + 18 * i as i32);
                canvas.draw(&Text::new(text, at, style)).map_err(failed)?;
            }
        }
        Ok(())
    })
}

fn colour(node: &NodeRow) -> RGBColor {
    let beyond = node.bound_ratio.is_some_and(|r| r > 1.0) || node.class_mismatches.is_some_and(|n| n > 0);
    let exact = |error: Option<f64>| error.is_none_or(|e| e <= 0.5);
    match (beyond, exact(node.local_ulp) && exact(node.accumulated_ulp)) {
        (true, _) => RGBColor(240, 140, 130),
        (false, false) => RGBColor(250, 230, 140),
        (false, true) => WHITE,
    }
}

fn ulp(error: Option<f64>) -> String {
    error.map_or_else(|| "not measured".to_owned(), |e| format!("{} ulp", short(e)))
}

/// Three digits.
pub(super) fn short(x: f64) -> String {
    match x.abs() {
        0.0 => "0".to_owned(),
        a if (1e-3..1e4).contains(&a) => {
            let digits = (2 - a.log10().floor() as i32).max(0) as usize;
            format!("{x:.digits$}")
        }
        _ => format!("{x:.2e}"),
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

fn failed(error: impl std::fmt::Display) -> ReportError {
    ReportError::Figure(error.to_string())
}
