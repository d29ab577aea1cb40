//! A site's node table, held to the schema cell by cell.

use std::collections::HashMap;
use std::path::Path;

use laconic_key::{Key, Purpose};

use super::id::SiteId;
use super::schema::{DrawnSplit, FeatureSchema, Schema};
use crate::dataset::Split;
use crate::error::{GraphError, Result};
use crate::limits::Limits;
use crate::memory::afford;
use crate::read::table::{Cell, Heading, Kind, Table, find_column, open_table, scan_all};
use crate::read::words::is_missing;
use crate::read::{Header, is_rounded_id, read_split, shorten};

/// The own nodes of a site, in the order of its table.
pub(super) struct Nodes {
    /// What the site calls each.
    pub ids: Vec<String>,
    /// Features, a row a node.
    pub features: Vec<f32>,
    /// The class of each, −1 without a label.
    pub labels: Vec<i32>,
    /// The part of each in the split.
    pub roles: Vec<u8>,
    /// Columns that the schema does not name.
    pub unread: Vec<String>,
}

/// What the cells of a column become.
enum Role<'a> {
    Id { seen: HashMap<String, usize> },
    Label { classes: HashMap<&'a str, i32> },
    Feature { of: &'a FeatureSchema, first: usize, values: HashMap<&'a str, usize> },
}

/// How a column that the schema names is asked for: numbers as they are, all else as text.
pub(super) fn kind_of(table: &dyn Table, column: usize) -> Kind {
    match table.columns()[column].kind {
        Kind::Integer => Kind::Float,
        Kind::Float => Kind::Float,
        _ => Kind::Text,
    }
}

/// How a column of ids is asked for: whole numbers have one spelling, whatever else stands in the file.
pub(super) fn kind_of_ids(table: &dyn Table, column: usize) -> Kind {
    if table.columns()[column].kind == Kind::Integer { Kind::Integer } else { Kind::Text }
}

/// Opens a table with a header, in which one of these names is.
pub(super) fn open(path: &Path, chosen: &[&str], limits: &Limits) -> Result<Box<dyn Table>> {
    open_table(path, limits, &Heading { given: Header::Auto, chosen, usual: &[], ends: false })
}

/// The column of this name, which is there.
pub(super) fn column(table: &dyn Table, path: &Path, name: &str) -> Result<usize> {
    let none = || GraphError::format(path, "header", format!("expected a column '{name}', as the schema says"));
    find_column(table, path, Some(name), &[])?.ok_or_else(none)
}

/// The text of a cell of ids, and what is wrong with it.
pub(super) fn text_of_id<'a>(
    cell: Cell<'a>,
    is_float: bool,
    number: &'a mut String,
) -> std::result::Result<&'a str, String> {
    match cell {
        Cell::Integer(id) => {
            *number = id.to_string();
            Ok(number)
        }
        Cell::Text(id) if is_float && is_rounded_id(id) => Err(format!(
            "found the id '{}', which has lost digits as a floating-point number: write ids as texts",
            shorten(id)
        )),
        Cell::Text(id) if !is_missing(id) => Ok(id),
        _ => Err("expected an id, found nothing".to_owned()),
    }
}

impl Nodes {
    /// Reads the node table of a site.
    ///
    /// # Errors
    ///
    /// The first cell that the schema does not allow, by file, line and column.
    pub fn read(path: &Path, schema: &Schema, site: u32, limits: &Limits) -> Result<Nodes> {
        let of_nodes = &schema.nodes;
        let features = of_nodes.features.iter().map(|feature| feature.column.as_str());
        let named = [of_nodes.id.as_str(), of_nodes.label.column.as_str()].into_iter();
        let names: Vec<&str> = named.chain(of_nodes.split.column.as_deref()).chain(features).collect();
        let table = open(path, &names, limits)?;
        let places = names.iter().map(|name| column(&*table, path, name)).collect::<Result<Vec<usize>>>()?;
        let (rows, width) = (table.rows(), of_nodes.features.iter().map(FeatureSchema::width).sum::<usize>());
        if rows as u64 > limits.nodes_max || rows == 0 {
            return Err(GraphError::format(
                path,
                "rows",
                format!("expected 1 to {} nodes, found {rows}", limits.nodes_max),
            ));
        }
        afford((rows * width * size_of::<f32>()) as u64).map_err(|what| GraphError::format(path, "features", what))?;
        let mut nodes = Nodes {
            ids: Vec::with_capacity(rows),
            features: vec![0.0; rows * width],
            labels: vec![-1; rows],
            roles: Vec::new(),
            unread: unread(&*table, &places),
        };
        nodes.scan(&*table, (schema, site), &places, width)?;
        nodes.roles = match (&of_nodes.split.column, schema.drawn_split()) {
            (Some(_), _) => read_split(&*table, places[2])?.roles,
            (None, Some(split)) => nodes.drawn(schema, site, split),
            (None, None) => Vec::new(),
        };
        Ok(nodes)
    }

    /// Reads all columns but that of the split.
    fn scan(
        &mut self,
        table: &dyn Table,
        (schema, site): (&Schema, u32),
        places: &[usize],
        width: usize,
    ) -> Result<()> {
        let of_nodes = &schema.nodes;
        let classes = of_nodes.label.classes.iter().map(String::as_str).zip(0..).collect();
        let mut roles = vec![(places[0], Role::Id { seen: HashMap::new() }), (places[1], Role::Label { classes })];
        let mut first = 0;
        for (of, &place) in of_nodes.features.iter().zip(&places[places.len() - of_nodes.features.len()..]) {
            let values = of.one_hot.iter().flatten().map(String::as_str).zip(0..).collect();
            roles.push((place, Role::Feature { of, first, values }));
            first += of.width();
        }
        let kind = |(place, role): &(usize, Role)| match role {
            Role::Id { .. } => (*place, kind_of_ids(table, *place)),
            Role::Label { .. } => (*place, Kind::Text),
            Role::Feature { of, .. } if of.one_hot.is_some() => (*place, Kind::Text),
            Role::Feature { .. } => (*place, kind_of(table, *place)),
        };
        let wanted: Vec<(usize, Kind)> = roles.iter().map(kind).collect();
        let is_float = table.columns()[places[0]].kind == Kind::Float;
        scan_all(table, &wanted, &mut |row, slot, cell| {
            match &mut roles[slot].1 {
                // All is scanned again where something is wrong, to say where it is.
                Role::Id { seen } => {
                    let mut number = String::new();
                    let id = own_id(schema, site, text_of_id(cell, is_float, &mut number)?)?;
                    let before = *seen.entry(id.to_owned()).or_insert(row);
                    if before != row {
                        return Err(format!(
                            "found the id '{}' again, which is that of row {}",
                            shorten(id),
                            before + 1
                        ));
                    }
                    self.ids.push(id.to_owned());
                }
                Role::Label { classes } => self.labels[row] = class(classes, &of_nodes.label.classes, cell)?,
                Role::Feature { of, first, values } => {
                    feature(of, values, cell, &mut self.features[row * width + *first..][..of.width()])?;
                }
            }
            Ok(())
        })
    }

    /// Draws for each labelled node whether it trains, validates or tests: by its id alone, so that it does not matter
    /// who draws, and who else is there.
    fn drawn(&self, schema: &Schema, site: u32, split: DrawnSplit) -> Vec<u8> {
        let key = Key::new(split.seed, Purpose::Split);
        let role = |(own, &label): (&String, &i32)| {
            let drawn = key.with(schema.wire(SiteId { site, own })).unit();
            match label {
                ..0 => 0,
                _ if drawn < split.train => Split::TRAIN,
                _ if drawn < split.train + split.val => Split::VAL,
                _ => Split::TEST,
            }
        };
        self.ids.iter().zip(&self.labels).map(role).collect()
    }
}

/// Columns that nobody reads.
pub(super) fn unread(table: &dyn Table, read: &[usize]) -> Vec<String> {
    let all = table.columns().iter().enumerate();
    all.filter(|(place, _)| !read.contains(place)).map(|(_, column)| column.name.clone()).collect()
}

/// What the site calls a node of its own.
fn own_id<'a>(schema: &Schema, site: u32, text: &'a str) -> std::result::Result<&'a str, String> {
    let id = schema.id(site, text)?;
    if id.site != site {
        let (own, of) = (&schema.sites[site as usize], &schema.sites[id.site as usize]);
        return Err(format!("found '{}' of {of}: a node table has the nodes of its own site, {own}", shorten(text)));
    }
    Ok(id.own)
}

/// The number of a class, −1 where there is none.
fn class(places: &HashMap<&str, i32>, classes: &[String], cell: Cell) -> std::result::Result<i32, String> {
    match cell {
        Cell::Missing => Ok(-1),
        Cell::Text(text) => match places.get(text) {
            Some(&class) => Ok(class),
            None if is_missing(text) => Ok(-1),
            None => Err(not_among("class", text, classes)),
        },
        _ => Err("expected a class".to_owned()),
    }
}

fn not_among(what: &str, text: &str, known: &[String]) -> String {
    const SHOWN: usize = 12;
    let more = if known.len() > SHOWN { format!(", … ({} in all)", known.len()) } else { String::new() };
    let known = known.iter().take(SHOWN).map(|one| shorten(one)).collect::<Vec<_>>().join(", ");
    let way = "all sites have to agree on another, in the schema";
    format!("'{}' is no {what} of the schema, which has {known}{more}; {way}", shorten(text))
}

/// Writes what a cell becomes.
fn feature(
    of: &FeatureSchema,
    values: &HashMap<&str, usize>,
    cell: Cell,
    into: &mut [f32],
) -> std::result::Result<(), String> {
    if let Some(known) = &of.one_hot {
        return match cell {
            Cell::Text(text) => match values.get(text) {
                Some(&place) => {
                    into[place] = 1.0;
                    Ok(())
                }
                None if is_missing(text) => Ok(()),
                None => Err(not_among("value", text, known)),
            },
            _ => Ok(()),
        };
    }
    let expected = if of.flag.is_some() { "0 or 1, or false or true" } else { "a number" };
    let value = match cell {
        Cell::Float(value) if !value.is_nan() => Some(value),
        Cell::Text(text) if !is_missing(text) => {
            Some(written(text).ok_or_else(|| format!("expected {expected}, found '{}'", shorten(text)))?)
        }
        _ => None,
    };
    match (of.number, value) {
        (Some(number), value) => {
            let way = "number.missing in the schema says what stands for it, for all sites";
            let value = value.or(number.missing).ok_or_else(|| format!("expected a number, found nothing; {way}"))?;
            // As the program scales what it reads, in the width that features have.
            let value = value as f32;
            into[0] = ((f64::from(value) - number.mean) / number.sd) as f32;
            if into[0].is_finite() { Ok(()) } else { Err(format!("expected a finite number, found {value}")) }
        }
        (None, Some(value)) if value == 0.0 || value == 1.0 => {
            into[0] = value as f32;
            Ok(())
        }
        (None, value) => {
            Err(format!("expected {expected}, found {}", value.map_or("nothing".to_owned(), |value| value.to_string())))
        }
    }
}

/// A number or a truth value, as a table among other texts has it.
fn written(text: &str) -> Option<f64> {
    let truth = || ["false", "true"].iter().position(|word| text.eq_ignore_ascii_case(word)).map(|place| place as f64);
    text.parse().ok().or_else(truth)
}
