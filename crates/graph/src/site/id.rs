//! Ids that say whose they are: `south/123` is node 123 of the site south.

use super::schema::Schema;
use crate::read::shorten;

/// A node by its site and what it is called there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SiteId<'a> {
    /// The number of the site: that of its part.
    pub site: u32,
    /// What the site calls the node.
    pub own: &'a str,
}

/// What a hash of an id begins with, so that it is no hash of anything else.
const DOMAIN: &[u8] = b"laconic id v1\n";

/// A node's global id: the first eight bytes, the lowest first, of the BLAKE3 hash of `laconic id v1`, a line feed and
/// `site/id`, whatever stands between the two in tables.
pub fn id_on_the_wire(site: &str, own: &str) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(DOMAIN).update(site.as_bytes()).update(b"/").update(own.as_bytes());
    let mut first = [0; 8];
    hasher.finalize_xof().fill(&mut first);
    u64::from_le_bytes(first)
}

impl Schema {
    /// The node that a cell of a table of the site `own` names, with a prefix or without.
    ///
    /// # Errors
    ///
    /// If it begins with what is no site, or says nothing behind its prefix.
    pub fn id<'a>(&self, own: u32, text: &'a str) -> Result<SiteId<'a>, String> {
        let separator = &self.ids.separator;
        let Some((prefix, rest)) = text.split_once(separator.as_str()) else {
            return Ok(SiteId { site: own, own: text });
        };
        let known = || self.sites.join(", ");
        let Some(site) = self.sites.iter().position(|site| site == prefix) else {
            let way = format!("ids that have '{separator}' in them need another ids.separator in the schema");
            return Err(format!(
                "found the id '{}': '{}' is none of the sites {}; {way}",
                shorten(text),
                shorten(prefix),
                known()
            ));
        };
        if rest.is_empty() {
            return Err(format!("found '{}': expected an id behind the site", shorten(text)));
        }
        Ok(SiteId { site: site as u32, own: rest })
    }

    /// The global id of a node.
    pub fn wire(&self, id: SiteId) -> u64 {
        id_on_the_wire(&self.sites[id.site as usize], id.own)
    }

    /// A node with the name of its site, however tables spell it.
    pub fn full(&self, id: SiteId) -> String {
        format!("{}{}{}", self.sites[id.site as usize], self.ids.separator, id.own)
    }
}
