//! The best round part by part, and class by class.

use std::collections::BTreeSet;

use laconic_train::record::parts::{ClassSummary, Judged, PartsSummary, WorstPart};

use super::run::Run;
use crate::bytes::{figure, separated};
use crate::page::Page;
use crate::page::table::Table;

/// Parts, and classes, with a row each, at most.
const ROWS_MAX: usize = 200;
/// Classes of a matrix at most: a wider table is nothing to look at.
const MATRIX_MAX: usize = 40;

/// The sections about parts and classes, as far as the run knows of them.
pub fn sections(page: &mut Page, run: &Run) {
    let summary = &run.recorded.summary;
    if let Some(parts) = summary.parts.as_ref().filter(|parts| parts.test.count.len() > 1) {
        page.heading("Part by part");
        page.say(&format!(
            "The best round on each part's own validation and test {} alone. Mean and spread (the sample standard \
             deviation) count every part for one that has the figure; a dash stands where a part has none.",
            run.recorded.task.words.noun
        ));
        page.table(&by_part(parts, &run.recorded.summary.part_names));
        more(page, parts.test.count.len(), "parts");
    }
    let Some(classes) = &summary.classes else { return };
    page.heading("Class by class");
    for (split, classes) in [("test", &classes.test), ("validation", &classes.val)] {
        if classes.iter().any(|class| class.support + class.predicted > 0) {
            page.say(&format!("The best round on {split} nodes of all parts:"));
            page.table(&by_class(classes));
            more(page, classes.len(), "classes");
        }
    }
    if let Some(confusion) = &summary.confusion {
        let names: Vec<String> = classes.test.iter().map(name).collect();
        for (split, matrix) in [("test", &confusion.test), ("validation", &confusion.val)] {
            matrix_of(page, split, (matrix, &names));
        }
    }
}

fn more(page: &mut Page, all: usize, what: &str) {
    if let Some(more) = all.checked_sub(ROWS_MAX).filter(|more| *more > 0) {
        page.note(&format!("{} more {what} are in summary.json", separated(more as u64)));
    }
}

/// A row for each part, and their mean, spread and worst.
fn by_part(parts: &Judged<PartsSummary>, called: &[String]) -> Table {
    let splits = [("validation", &parts.val), ("test", &parts.test)];
    let names: BTreeSet<&String> = splits.iter().flat_map(|(_, of)| of.figures.keys()).collect();
    let mut table = Table::new(&["part"]);
    let called = |part: usize| called.get(part).cloned().unwrap_or_else(|| part.to_string());
    let mut rows: Vec<Vec<String>> = (0..parts.test.count.len().min(ROWS_MAX)).map(|part| vec![called(part)]).collect();
    let mut ends = ["mean", "spread", "worst"].map(|name| vec![name.to_owned()]);
    for (split, of) in splits.iter().filter(|(_, of)| of.count.iter().any(|count| *count > 0)) {
        table.head.push(format!("{split}: how many"));
        rows.iter_mut().zip(&of.count).for_each(|(row, count)| row.push(separated(*count)));
        ends.iter_mut().for_each(|row| row.push(String::new()));
        for name in &names {
            let Some(figures) = of.figures.get(*name) else { continue };
            table.head.push(format!("{split}: {name}"));
            rows.iter_mut().zip(&figures.of).for_each(|(row, of)| row.push(figure(*of)));
            let worst =
                |WorstPart { part, figure: least }| format!("{} (part {})", figure(Some(least)), called(part as usize));
            let said = [figure(figures.mean), figure(figures.spread), figures.worst.map_or("-".to_owned(), worst)];
            ends.iter_mut().zip(said).for_each(|(row, said)| row.push(said));
        }
    }
    table.rows = rows.into_iter().chain(ends).collect();
    table
}

fn name(class: &ClassSummary) -> String {
    class.name.clone().unwrap_or_else(|| class.class.to_string())
}

fn by_class(classes: &[ClassSummary]) -> Table {
    let mut table = Table::new(&["class", "of it", "taken for it", "rightly", "precision", "recall", "F1"]);
    table.rows = classes
        .iter()
        .take(ROWS_MAX)
        .map(|class| {
            let counts = [class.support, class.predicted, class.true_positives].map(separated);
            let figures = [class.precision, class.recall, class.f1].map(figure);
            std::iter::once(name(class)).chain(counts).chain(figures).collect()
        })
        .collect();
    table
}

/// Which classes were taken for which.
fn matrix_of(page: &mut Page, split: &str, (matrix, names): (&[Vec<u64>], &[String])) {
    if matrix.iter().flatten().all(|count| *count == 0) {
        return;
    }
    if matrix.len() > MATRIX_MAX {
        page.note(&format!("The confusion matrix of {split} nodes, {0} by {0}, is in summary.json.", matrix.len()));
        return;
    }
    let mut piece = Page::default();
    piece.say("A row for each true class, a column for what its nodes were taken for.");
    let mut table = Table::new(&["true class"]);
    table.head.extend(names.iter().cloned());
    table.rows = matrix
        .iter()
        .zip(names)
        .map(|(row, name)| std::iter::once(name.clone()).chain(row.iter().map(|count| separated(*count))).collect())
        .collect();
    piece.table(&table);
    page.fold(&format!("Confusion matrix of {split} nodes"), piece);
}
