//! A site's edge tables: edges between its own nodes, and from or to nodes of other sites.

use std::collections::HashMap;
use std::path::Path;

use super::id::SiteId;
use super::nodes::{column, kind_of_ids, open, text_of_id, unread};
use super::schema::Schema;
use crate::error::{GraphError, Result};
use crate::limits::Limits;
use crate::read::shorten;
use crate::read::table::{Cell, Kind, scan_all};

/// Edges by the ids of both ends on the wire.
#[derive(Default)]
pub(super) struct Listed {
    /// Where each starts, and where it ends.
    pub ends: [Vec<u64>; 2],
    /// The weight of each, where edges have some.
    pub weights: Vec<f32>,
    /// Columns that the schema does not name.
    pub unread: Vec<String>,
}

/// Which nodes there are, by their ids on the wire.
pub(super) struct Known<'a> {
    schema: &'a Schema,
    site: u32,
    /// The site of each, and what it calls it.
    nodes: HashMap<u64, (u32, String)>,
}

impl<'a> Known<'a> {
    /// The own nodes of a site.
    ///
    /// # Errors
    ///
    /// If two have one id on the wire.
    pub fn of(schema: &'a Schema, site: u32, ids: &[String]) -> std::result::Result<Known<'a>, String> {
        let mut known = Known { schema, site, nodes: HashMap::with_capacity(ids.len()) };
        for own in ids {
            known.add(SiteId { site, own })?;
        }
        Ok(known)
    }

    fn add(&mut self, id: SiteId) -> std::result::Result<u64, String> {
        let wire = self.schema.wire(id);
        let (site, own) = self.nodes.entry(wire).or_insert_with(|| (id.site, id.own.to_owned()));
        if (*site, own.as_str()) != (id.site, id.own) {
            let (one, other) = (self.schema.full(SiteId { site: *site, own }), self.schema.full(id));
            return Err(format!("the ids {one} and {other} have one number among all; one of them needs another name"));
        }
        Ok(wire)
    }

    /// The id on the wire of an end of an edge.
    fn end(&mut self, text: &str) -> std::result::Result<u64, String> {
        let id = self.schema.id(self.site, text)?;
        if id.site != self.site {
            return self.add(id);
        }
        let wire = self.schema.wire(id);
        match self.nodes.get(&wire) {
            Some((site, own)) if (*site, own.as_str()) == (id.site, id.own) => Ok(wire),
            _ => {
                let other =
                    self.schema.sites.iter().zip(0..).find(|(_, site)| *site != self.site).map(|(name, _)| name);
                let other =
                    other.map(|name| format!("; a node of {name} is written {name}{}…", self.schema.ids.separator));
                let what = format!("'{}' is no node of the node table", shorten(text));
                Err(what + &other.unwrap_or_default())
            }
        }
    }

    /// Whether a node is the site's own.
    pub fn is_own(&self, wire: u64) -> bool {
        self.site_of(wire) == self.site
    }

    /// Whose a node is.
    pub fn site_of(&self, wire: u64) -> u32 {
        self.nodes.get(&wire).map_or(self.site, |(site, _)| *site)
    }

    /// All ids on the wire, ascending.
    pub fn all(&self) -> Vec<u64> {
        let mut all: Vec<u64> = self.nodes.keys().copied().collect();
        all.sort_unstable();
        all
    }
}

impl Listed {
    /// Reads one more edge table.
    ///
    /// # Errors
    ///
    /// The first cell that the schema does not allow, by file, line and column.
    pub fn read(&mut self, path: &Path, known: &mut Known, limits: &Limits) -> Result<()> {
        let edges = &known.schema.edges;
        let names: Vec<&str> =
            [&edges.source, &edges.target].into_iter().chain(&edges.weight).map(String::as_str).collect();
        let table = open(path, &names, limits)?;
        let places = names.iter().map(|name| column(&*table, path, name)).collect::<Result<Vec<usize>>>()?;
        if self.ends[0].len().saturating_add(table.rows()) as u64 > limits.edges_max {
            return Err(GraphError::too_large(path, "rows", limits.edges_max));
        }
        let kind = |(slot, &place): (usize, &usize)| match slot {
            2 => (place, super::nodes::kind_of(&*table, place)),
            _ => (place, kind_of_ids(&*table, place)),
        };
        let wanted: Vec<(usize, Kind)> = places.iter().enumerate().map(kind).collect();
        let are_floats: Vec<bool> = places.iter().map(|&place| table.columns()[place].kind == Kind::Float).collect();
        scan_all(&*table, &wanted, &mut |_, slot, cell| {
            if slot == 2 {
                self.weights.push(weight(cell)?);
                return Ok(());
            }
            let mut number = String::new();
            self.ends[slot].push(known.end(text_of_id(cell, are_floats[slot], &mut number)?)?);
            Ok(())
        })?;
        self.unread.extend(unread(&*table, &places));
        Ok(())
    }
}

fn weight(cell: Cell) -> std::result::Result<f32, String> {
    match cell {
        Cell::Float(weight) if (weight as f32).is_finite() => Ok(weight as f32),
        // One cell that is no number makes a column of texts.
        Cell::Text(text) => match text.trim().parse::<f32>() {
            Ok(weight) if weight.is_finite() => Ok(weight),
            _ => Err(format!("expected a weight, found '{}'", shorten(text))),
        },
        _ => Err("expected a weight, a finite number".to_owned()),
    }
}
