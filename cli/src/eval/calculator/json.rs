//! Values as JSON.
//!
//! ```text
//! {"kind":"layout","text":"…","shape":…,"stride":…,"swizzle":null or [B,M,S],"offset":0,"size":n,"cosize":n}
//! {"kind":"int","value":n}   {"kind":"coord","value":[1,[0,2]]}   {"kind":"bool","value":b}
//! ```
//!
//! Named strides are strings (`"2*ld"`) and leave `cosize` null. The rarer kinds are `expr`, `swizzle`, `coord_layout`,
//! `inverse`, `matrix` and `list`.

use serde_json::{Value as Json, json};
use tilewright::{Affine, CoordLayout, IntTuple, Slicer, Swizzle, Swizzled};

use super::value::Value;

/// The JSON of a value.
pub(crate) fn to_json(value: &Value) -> Json {
    match value {
        Value::Int(value) => json!({"kind": "int", "value": value}),
        Value::Bool(value) => json!({"kind": "bool", "value": value}),
        Value::Form(form) => json!({"kind": "expr", "text": form.to_string()}),
        Value::Tuple(slicer) => json!({"kind": "coord", "value": coordinate(slicer)}),
        Value::Layout(layout) => layout_json(layout),
        Value::Affine(layout) => affine_json(layout),
        Value::Coords(layout) => coords_json(layout),
        Value::Swizzle(swizzle) => json!({
            "kind": "swizzle", "text": swizzle.to_string(), "value": swizzle_json(*swizzle),
        }),
        Value::Inverse(inverse) => json!({
            "kind": "inverse",
            "text": inverse.to_string(),
            "layout": to_json(&Value::layout(inverse.layout())),
            "offset": inverse.offset(),
            "swizzle": swizzle_json(inverse.swizzle()),
        }),
        Value::Matrix(matrix) => json!({"kind": "matrix", "value": matrix.columns()}),
        Value::List(items) => json!({
            "kind": "list", "value": items.iter().map(to_json).collect::<Vec<_>>(),
        }),
    }
}

fn layout_json(layout: &Swizzled) -> Json {
    json!({
        "kind": "layout",
        "text": layout.to_string(),
        "shape": nested(&layout.shape()),
        "stride": nested(&layout.layout().stride()),
        "swizzle": swizzle_json(layout.swizzle()),
        "offset": layout.offset(),
        "size": layout.size(),
        "cosize": layout.cosize(),
    })
}

fn affine_json(layout: &Affine) -> Json {
    json!({
        "kind": "layout",
        "text": layout.to_string(),
        "shape": nested(&layout.shape()),
        "stride": stride_texts(&layout.shape(), &layout.to_string()),
        "swizzle": null,
        "offset": 0,
        "size": layout.size(),
        "cosize": null,
    })
}

fn coords_json(layout: &CoordLayout) -> Json {
    json!({
        "kind": "coord_layout",
        "text": layout.to_string(),
        "shape": nested(&layout.shape()),
        "stride": stride_texts(&layout.shape(), &layout.to_string()),
        "size": layout.size(),
    })
}

fn swizzle_json(swizzle: Swizzle) -> Json {
    if swizzle.is_identity() {
        Json::Null
    } else {
        json!([swizzle.b(), swizzle.m(), swizzle.s()])
    }
}

/// The strides of a printed layout as strings, nested as the shape. Integers become numbers.
fn stride_texts(shape: &IntTuple, text: &str) -> Json {
    let strides = text.rsplit(':').next().unwrap_or_default();
    let mut leaves = strides.split(',').map(|s| s.trim_matches(['(', ')']));
    nest(shape, &mut || {
        let leaf = leaves.next().unwrap_or_default();
        leaf.parse::<i64>()
            .map_or_else(|_| json!(leaf), |n| json!(n))
    })
}

fn nested(tuple: &IntTuple) -> Json {
    let mut leaves = (0..tuple.leaves()).map(|i| tuple.leaf(i));
    nest(tuple, &mut || json!(leaves.next()))
}

fn coordinate(slicer: &Slicer) -> Json {
    let tuple = slicer.tuple();
    let mut leaves = (0..tuple.leaves()).map(|i| (!slicer.is_open(i)).then(|| tuple.leaf(i)));
    nest(&tuple, &mut || json!(leaves.next().flatten()))
}

/// Arrays with the parentheses of `profile` around leaves in order.
fn nest(profile: &IntTuple, leaf: &mut impl FnMut() -> Json) -> Json {
    if profile.is_int() {
        return leaf();
    }
    let items = (0..profile.rank()).map(|i| match profile.get(i) {
        Ok(element) => nest(&element, leaf),
        Err(_) => Json::Null,
    });
    Json::Array(items.collect())
}
