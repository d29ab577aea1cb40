//! A folder of plain arrays with `graph.json`, read whole; see [`super::passes::ArrayFolder`], which can also be cut
//! without being read whole.

use std::path::Path;

use super::passes::{ArrayFolder, Input};
use super::{ReadOptions, Reader};
use crate::about::About;
use crate::build::{BuildOptions, build_graph};
use crate::dataset::{Dataset, Features, Ids, Labels, Split};
use crate::error::GraphError;
use crate::error::Result;
use crate::memory::afford;
use crate::source::EdgeSource;

/// The reader of folders of arrays.
pub struct Arrays;

impl Reader for Arrays {
    fn name(&self) -> &'static str {
        "folder of arrays"
    }

    fn recognises(&self, path: &Path) -> bool {
        ArrayFolder::recognises(path)
    }

    fn read(&self, path: &Path, options: &ReadOptions) -> Result<Dataset> {
        let folder = ArrayFolder::open(path, &options.limits)?;
        let (nodes, columns) = (folder.about().nodes as usize, folder.columns());
        let bytes =
            folder.edges_stored().saturating_mul(8).saturating_add((nodes as u64 * 4).saturating_mul(columns as u64));
        afford(bytes).map_err(|what| {
            let instead = "; laconic partition --memory cuts it without reading it whole";
            GraphError::format(path, "folder", format!("reading it {what}{instead}"))
        })?;
        let (mut sources, mut targets) = (Vec::new(), Vec::new());
        folder.pass(&mut |pairs| {
            sources.extend(pairs.iter().map(|pair| pair.0 as u32));
            targets.extend(pairs.iter().map(|pair| pair.1 as u32));
            Ok(())
        })?;
        let how = BuildOptions {
            symmetrise: options.symmetrise || !folder.about().directed,
            keep_self_loops: options.keep_self_loops,
            duplicates: options.duplicates,
        };
        let graph = build_graph(nodes, sources, targets, None, how)?.0;
        let (values, exact) = folder.features_whole()?;
        let (labels, roles) = (folder.labels()?, folder.roles()?);
        let dataset = Dataset {
            name: folder.about().name.clone(),
            graph,
            exact,
            features: if columns == 0 { Features::None } else { Features::Dense { columns, values: values.into() } },
            labels: match folder.about().classes as usize {
                0 => Labels::None,
                classes => Labels::Single { classes, values: labels },
            },
            splits: if roles.is_empty() { Vec::new() } else { vec![Split { roles }] },
            ids: Ids::Row,
            about: About::default(),
            negatives: None,
        };
        dataset.checked()
    }
}
