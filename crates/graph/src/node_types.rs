//! Nodes of several types, each with feature columns of its own, in one matrix.
//!
//! Every type has a stretch of columns that are 0 for all other nodes, and at its end one more that is 1 for every node
//! of the type. So a linear map of the whole row is a linear map for each type with a bias of its own, a type without
//! features has one all the same, and whatever takes sparse rows takes types. Which type a node is of stands in its
//! row; [`NodeType`] says where.

use crate::about::NodeType;
use crate::dataset::Features;

/// The nodes of one type.
#[derive(Debug, Clone, PartialEq)]
pub struct TypedNodes {
    /// What the type is called.
    pub name: String,
    /// Features of its nodes, in their order.
    pub features: Features,
    /// What the feature columns are called; empty where they have no names.
    pub columns: Vec<String>,
}

/// The features of all nodes, `of[node]` being the number of its type, and what their columns are.
///
/// # Panics
///
/// If a node is of no type, or a type has not as many rows as nodes.
pub fn beside(types: &[TypedNodes], of: &[u16]) -> (Features, Vec<NodeType>, Vec<String>) {
    let widths = types.iter().map(|nodes| nodes.features.columns() + 1);
    let starts: Vec<usize> = widths.clone().scan(0, |end, width| Some(std::mem::replace(end, *end + width))).collect();
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    let mut rows = vec![0; types.len()];
    for &number in of {
        let (nodes, start) = (&types[usize::from(number)], starts[usize::from(number)]);
        let row = &mut rows[usize::from(number)];
        for_each_value(&nodes.features, *row, |column, value| {
            indices.push((start + column) as u32);
            values.push(value);
        });
        indices.push((start + nodes.features.columns()) as u32);
        values.push(1.0);
        offsets.push(values.len() as u64);
        *row += 1;
    }
    let named = |nodes: &TypedNodes| {
        let column = |number: usize| match nodes.columns.get(number) {
            Some(column) => format!("{}.{column}", nodes.name),
            None => format!("{}.{number}", nodes.name),
        };
        (0..nodes.features.columns()).map(column).chain([nodes.name.clone()]).collect::<Vec<_>>()
    };
    let described = types.iter().zip(widths).map(|(nodes, columns)| NodeType { name: nodes.name.clone(), columns });
    let described: Vec<NodeType> = described.collect();
    let columns = described.iter().map(|kind| kind.columns).sum();
    let features = Features::Sparse { columns, offsets, indices, values };
    (features, described, types.iter().flat_map(named).collect())
}

/// Features that know no types, for nodes of these types: each type has all columns to itself.
pub fn apart(features: &Features, names: &[String], of: &[u16], type_names: Vec<String>) -> Vec<TypedNodes> {
    let of_type = |(number, name): (usize, String)| {
        let rows = of.iter().enumerate().filter(|(_, kind)| usize::from(**kind) == number).map(|(row, _)| row);
        let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in rows {
            for_each_value(features, row, |column, value| {
                indices.push(column as u32);
                values.push(value);
            });
            offsets.push(values.len() as u64);
        }
        let features = Features::Sparse { columns: features.columns(), offsets, indices, values };
        TypedNodes { name, features, columns: names.to_vec() }
    };
    type_names.into_iter().enumerate().map(of_type).collect()
}

/// The number of each node's type; `None` where there are no types, or some row is of none or of several.
pub fn types_of(features: &Features, types: &[NodeType]) -> Option<Vec<u16>> {
    if types.is_empty() {
        return None;
    }
    let ends = types.iter().scan(0, |end, kind| {
        *end += kind.columns;
        Some(*end)
    });
    let ends: Vec<usize> = ends.collect();
    let type_of = |row: &[u64], indices: &[u32]| {
        let (first, last) = indices[row[0] as usize..row[1] as usize]
            .split_first()
            .map(|(first, rest)| (first, rest.last().unwrap_or(first)))?;
        let place = |column: u32| ends.partition_point(|&end| end <= column as usize);
        let number = place(*first);
        (number == place(*last) && *last as usize + 1 == ends[number]).then_some(number as u16)
    };
    // The only type whose last column is 1, where all columns of others are 0.
    let type_of_dense = |row: &[f32]| {
        let number = ends.iter().position(|end| end.checked_sub(1).is_some_and(|flag| row[flag] == 1.0))?;
        let own = ends[number] - types[number].columns..ends[number];
        let is_own = |(column, value): (usize, &f32)| *value == 0.0 || own.contains(&column);
        row.iter().enumerate().all(is_own).then_some(number as u16)
    };
    match features {
        Features::None => None,
        Features::Dense { columns, .. } if ends.last() != Some(columns) || *columns == 0 => None,
        Features::Dense { columns, values } => {
            let (starts, mut room) = ((0..values.len()).step_by(*columns), Vec::new());
            starts.map(|start| type_of_dense(values.piece(start..start + columns, &mut room))).collect()
        }
        Features::Sparse { offsets, indices, .. } => offsets.windows(2).map(|row| type_of(row, indices)).collect(),
    }
}

/// Calls `each` for the values of a row that are not 0 if it is dense, and for all that are stored if it is sparse.
fn for_each_value(features: &Features, row: usize, mut each: impl FnMut(usize, f32)) {
    let is_dense = matches!(features, Features::Dense { .. });
    features.for_each_of(row, |column, value| {
        if value != 0.0 || !is_dense {
            each(column, value);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two types, of two columns and of none, in turns.
    fn sample() -> (Vec<TypedNodes>, Vec<u16>) {
        let people = Features::Dense { columns: 2, values: vec![1.0, 0.0, 2.0, 3.0].into() };
        let columns = vec!["age".to_owned(), "size".to_owned()];
        let people = TypedNodes { name: "person".to_owned(), features: people, columns };
        let shops = TypedNodes { name: "shop".to_owned(), features: Features::None, columns: Vec::new() };
        (vec![people, shops], vec![0, 1, 0])
    }

    #[test]
    fn each_type_has_columns_of_its_own_and_one_that_says_it() {
        let (types, of) = sample();
        let (features, described, names) = beside(&types, &of);
        let (offsets, indices) = (vec![0, 2, 3, 6], vec![0, 2, 3, 0, 1, 2]);
        assert_eq!(
            features,
            Features::Sparse { columns: 4, offsets, indices, values: vec![1.0, 1.0, 1.0, 2.0, 3.0, 1.0] }
        );
        assert_eq!(names, ["person.age", "person.size", "person", "shop"]);
        assert_eq!(described.iter().map(|kind| kind.columns).collect::<Vec<_>>(), [3, 1]);
        assert_eq!(types_of(&features, &described), Some(of.clone()));
        let dense = |values: Vec<f32>| Features::Dense { columns: 4, values: values.into() };
        let values = vec![1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 1.0, 0.0];
        assert_eq!(types_of(&dense(values.clone()), &described), Some(of));
        let none = NodeType { name: "none".to_owned(), columns: 0 };
        assert_eq!(
            types_of(&dense(vec![1.0; 4]), &[none, NodeType { name: "all".to_owned(), columns: 4 }]),
            Some(vec![1])
        );
        for (place, value) in [(2, 0.0), (4, 1.0), (3, 1.0)] {
            let mut values = values.clone();
            values[place] = value;
            assert_eq!(types_of(&dense(values), &described), None, "{place}");
        }
    }

    #[test]
    fn features_without_types_are_put_apart_and_beside_each_other() {
        let features = Features::Dense { columns: 1, values: vec![5.0, 6.0, 7.0].into() };
        let types = apart(&features, &[], &[1, 0, 1], vec!["a".to_owned(), "b".to_owned()]);
        let (features, ..) = beside(&types, &[1, 0, 1]);
        let (offsets, indices) = (vec![0, 2, 4, 6], vec![2, 3, 0, 1, 2, 3]);
        assert_eq!(
            features,
            Features::Sparse { columns: 4, offsets, indices, values: vec![5.0, 1.0, 6.0, 1.0, 7.0, 1.0] }
        );
    }

    #[test]
    fn a_row_of_no_type_or_of_two_has_none() {
        let kind = |name: &str, columns| NodeType { name: name.to_owned(), columns };
        let types = [kind("a", 2), kind("b", 1)];
        for indices in [vec![], vec![0], vec![0, 2]] {
            let (offsets, values) = (vec![0, indices.len() as u64], vec![1.0; indices.len()]);
            let features = Features::Sparse { columns: 3, offsets, indices, values };
            assert_eq!(types_of(&features, &types), None);
        }
    }
}
