//! Names that say which two columns of a table are the ends of edges.

/// What the two ends of an edge are called, alone or with the same words around both.
const PAIRS: [(&str, &str); 31] = [
    ("source", "target"),
    ("source", "dest"),
    ("source", "destination"),
    ("source", "sink"),
    ("src", "dst"),
    ("src", "dest"),
    ("from", "to"),
    ("head", "tail"),
    ("subject", "object"),
    ("subj", "obj"),
    ("orig", "dest"),
    ("origin", "destination"),
    ("originator", "beneficiary"),
    ("originating", "terminating"),
    ("sender", "receiver"),
    ("sender", "recipient"),
    ("payer", "payee"),
    ("debtor", "creditor"),
    ("buyer", "seller"),
    ("caller", "callee"),
    ("caller", "called"),
    ("calling", "called"),
    ("follower", "followee"),
    ("follower", "followed"),
    ("citing", "cited"),
    ("parent", "child"),
    ("predecessor", "successor"),
    ("startid", "endid"),
    ("startnode", "endnode"),
    ("initiator", "responder"),
    ("giver", "taker"),
];

/// Words of which a name has one more than the other's, so that they alone say little.
const LETTERS: [(&str, &str); 8] =
    [("a", "b"), ("1", "2"), ("0", "1"), ("i", "j"), ("x", "y"), ("u", "v"), ("left", "right"), ("first", "second")];

/// What names hold beside an end when they are about the node itself and not about a property of it.
const OF_NODES: [&str; 22] = [
    "",
    "id",
    "ids",
    "node",
    "nodeid",
    "name",
    "key",
    "account",
    "accountid",
    "user",
    "userid",
    "ip",
    "addr",
    "address",
    "number",
    "no",
    "msisdn",
    "vertex",
    "vertexid",
    "entity",
    "customer",
    "idx",
];

/// Who does something, and what it is done with: nodes of two kinds, whatever their ids.
const DOERS: [&str; 18] = [
    "user",
    "customer",
    "client",
    "member",
    "reader",
    "viewer",
    "buyer",
    "patient",
    "student",
    "author",
    "actor",
    "employee",
    "visitor",
    "subscriber",
    "player",
    "reviewer",
    "listener",
    "cardholder",
];
const THINGS: [&str; 34] = [
    "item",
    "product",
    "movie",
    "film",
    "book",
    "song",
    "track",
    "artist",
    "album",
    "business",
    "restaurant",
    "merchant",
    "shop",
    "store",
    "article",
    "paper",
    "venue",
    "page",
    "video",
    "game",
    "course",
    "job",
    "tag",
    "query",
    "url",
    "app",
    "drug",
    "disease",
    "gene",
    "recipe",
    "beer",
    "hotel",
    "asin",
    "isbn",
];

/// Whether `source` and `target` are called like nodes of two kinds, such as `userId` and `movieId`.
pub fn are_two_kinds(source: &str, target: &str) -> bool {
    let is_one = |name: &str, of: &[&str]| {
        let words = words(name);
        let is_it = |word: &str| of.contains(&word) || word.strip_suffix("id").is_some_and(|word| of.contains(&word));
        let rest: Vec<&str> =
            words.iter().map(String::as_str).filter(|word| !OF_NODES.contains(word) || is_it(word)).collect();
        matches!(rest[..], [word] if is_it(word))
    };
    is_one(source, &DOERS) && is_one(target, &THINGS)
}

/// How well two names say that they are the ends of edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Likeness {
    /// They differ in a letter or a number, or not at all.
    Letters,
    /// They differ in two words for ends, of something that nodes may have.
    Words,
    /// They are two words for ends, perhaps with one for nodes.
    Ends,
}

/// Letters and digits of a name in lower case, without the id space that Neo4j writes behind it.
fn compact(name: &str) -> String {
    let name = name.split_once('(').map_or(name, |(before, _)| before);
    name.chars().filter(|sign| sign.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The words of a name, in lower case: `Person1Id` has three.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for sign in name.split_once('(').map_or(name, |(before, _)| before).chars() {
        let starts = before.is_lowercase() && sign.is_uppercase() || before.is_numeric() != sign.is_numeric();
        if !sign.is_alphanumeric() || starts {
            words.push(String::new());
        }
        if sign.is_alphanumeric() {
            words.last_mut().expect("there is one from the start").extend(sign.to_lowercase());
        }
        before = sign;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether `source` and `target` are called like the ends of edges.
pub fn likeness(source: &str, target: &str) -> Option<Likeness> {
    if (source, target) == ("_start", "_end") {
        return Some(Likeness::Ends);
    }
    let (a, b) = (compact(source), compact(target));
    let around = |&(start, end): &(&str, &str)| {
        let mut places = a.match_indices(start).map(|(place, _)| (&a[..place], &a[place + start.len()..]));
        places.find(|(before, after)| b == format!("{before}{end}{after}"))
    };
    if let Some((before, after)) = PAIRS.iter().find_map(around) {
        let is_of_nodes = OF_NODES.contains(&format!("{before}{after}").as_str());
        return Some(if is_of_nodes { Likeness::Ends } else { Likeness::Words });
    }
    // As pandas, DuckDB and Polars call the second of two columns of one name.
    let is_of_nodes = OF_NODES.contains(&a.as_str());
    // `price_1` is the price of yesterday.
    let is_second = |rest: &str| rest == ".1" || is_of_nodes && ["_1", "_duplicated_0"].contains(&rest);
    if source == target || target.strip_prefix(source).is_some_and(is_second) {
        return Some(if is_of_nodes { Likeness::Ends } else { Likeness::Letters });
    }
    let (a, b) = (words(source), words(target));
    let mut others = a.iter().zip(&b).filter(|(a, b)| a != b);
    match (others.next(), others.next()) {
        (Some((a, b)), None) if LETTERS.contains(&(a, b)) => {}
        _ => return None,
    }
    (a.len() == b.len()).then_some(Likeness::Letters)
}

/// Whether two of these names are those of ends and can hardly be anything else.
pub fn name_ends(names: &[String]) -> bool {
    let is_pair = |a: &String, b: &String| {
        let of_variables = || a.strip_prefix("a.").is_some_and(|rest| b.strip_prefix("b.") == Some(rest));
        a != b && (likeness(a, b) == Some(Likeness::Ends) || of_variables())
    };
    names.len() <= COLUMNS_MAX && names.iter().any(|a| names.iter().any(|b| is_pair(a, b)))
}

/// All pairs of names are looked at where there are no more of them than this.
pub const COLUMNS_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_known_by_the_words_in_which_their_names_differ() {
        let all = [
            ("caller", "callee", Some(Likeness::Ends)),
            ("nameOrig", "nameDest", Some(Likeness::Ends)),
            (":START_ID(Person)", ":END_ID(Film)", Some(Likeness::Ends)),
            ("_from", "_to", Some(Likeness::Ends)),
            ("_start", "_end", Some(Likeness::Ends)),
            ("src_ip", "dst_ip", Some(Likeness::Ends)),
            ("FromNodeId", "ToNodeId", Some(Likeness::Ends)),
            ("Account", "Account", Some(Likeness::Ends)),
            ("Account", "Account.1", Some(Likeness::Ends)),
            ("Account", "Account_1", Some(Likeness::Ends)),
            ("Account", "Account_duplicated_0", Some(Likeness::Ends)),
            ("oldbalanceOrig", "oldbalanceDest", Some(Likeness::Words)),
            ("From Bank", "To Bank", Some(Likeness::Words)),
            ("a.id", "b.id", Some(Likeness::Letters)),
            ("Person1Id", "Person2Id", Some(Likeness::Letters)),
            ("Entrez Gene Interactor A", "Entrez Gene Interactor B", Some(Likeness::Letters)),
            ("amount", "amount", Some(Likeness::Letters)),
            ("target", "source", None),
            ("start", "end", None),
            ("a.id", "r.amount", None),
            ("call_id", "caller", None),
            ("userId", "movieId", None),
            ("x1", "y2", None),
        ];
        for (source, target, expected) in all {
            assert_eq!(likeness(source, target), expected, "{source} and {target}");
        }
    }

    #[test]
    fn users_and_films_are_two_kinds_and_users_are_one() {
        for (source, target) in
            [("userId", "movieId"), ("user_id", "item_id"), ("USERID", "itemid"), ("customer", "merchant")]
        {
            assert!(are_two_kinds(source, target), "{source} and {target}");
        }
        for (source, target) in
            [("user", "user"), ("movieId", "userId"), ("userId", "rating"), ("id", "item"), ("a", "b")]
        {
            assert!(!are_two_kinds(source, target), "{source} and {target}");
        }
    }

    #[test]
    fn a_first_row_of_nodes_is_no_line_of_names() {
        let are = |names: &str| name_ends(&names.split(',').map(str::to_owned).collect::<Vec<_>>());
        assert!(are("head,relation,tail") && are("a.id,r.amount,b.id") && are("step,nameOrig,nameDest"));
        assert!(!are("node1,node2") && !are("a,b") && !are("ann,ann") && !are("id,id"));
    }
}
