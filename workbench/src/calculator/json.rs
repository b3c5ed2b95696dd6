//! Values as JSON.
//!
//! ```text
//! {"kind":"layout","text":"…","shape":…,"stride":…,"swizzle":null or [B,M,S],"offset":0,"size":n,"cosize":n}
//! {"kind":"int","value":n}   {"kind":"coord","value":[1,[0,2]]}   {"kind":"bool","value":b}
//! ```
//!
//! Named strides are strings (`"2*ld"`) and leave `cosize` null. The rarer kinds are `expr`, `swizzle`, `coord_layout`,
//! `composed`, `inverse`, `matrix`, `list`, and `distribution`, `shards` and `redistribution` of devices.

use serde_json::{Value as Json, json};
use tilewright::{Chain, IntTuple, MovedCoords, Slicer, Step, Swizzle, Swizzled, SwizzledAffine};

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
        Value::Chain(chain) => chain_json(chain),
        Value::Matrix(matrix) => json!({"kind": "matrix", "value": matrix.columns()}),
        Value::Devices(devices) => devices.to_json(),
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

fn affine_json(layout: &SwizzledAffine) -> Json {
    let offset = layout.offset_form();
    json!({
        "kind": "layout",
        "text": layout.to_string(),
        "shape": nested(&layout.shape()),
        "stride": stride_texts(&layout.shape(), &layout.layout().to_string()),
        "swizzle": swizzle_json(layout.swizzle()),
        "offset": offset.as_int().map_or_else(|| json!(offset.to_string()), |n| json!(n)),
        "size": layout.size(),
        "cosize": null,
    })
}

fn coords_json(layout: &MovedCoords) -> Json {
    json!({
        "kind": "coord_layout",
        "text": layout.to_string(),
        "shape": nested(&layout.shape()),
        "stride": stride_texts(&layout.shape(), &layout.layout().to_string()),
        "offset": nested(&layout.offset_coord()),
        "size": layout.size(),
    })
}

/// The inverse of a swizzled layout has its parts by name; other compositions list their steps, the last one first.
fn chain_json(chain: &Chain) -> Json {
    if chain.inner().is_none()
        && let Some((Step::Layout(layout), rest)) = chain.steps().split_first()
    {
        let (mut offset, mut swizzle) = (0, Json::Null);
        for step in rest {
            match step {
                Step::Offset(n) => offset = *n,
                Step::Swizzle(s) | Step::InverseSwizzle(s) => swizzle = swizzle_json(*s),
                _ => {}
            }
        }
        return json!({
            "kind": "inverse",
            "text": chain.to_string(),
            "layout": to_json(&Value::layout(*layout)),
            "offset": offset,
            "swizzle": swizzle,
        });
    }
    let inner = chain.inner();
    let mut steps: Vec<String> = chain.steps().iter().map(Step::to_string).collect();
    if let Some(inner) = &inner {
        if !inner.swizzle().is_identity() {
            steps.push(inner.swizzle().to_string());
        }
        if inner.offset() != 0 {
            steps.push(inner.offset().to_string());
        }
        steps.push(inner.layout().to_string());
    }
    json!({
        "kind": "composed",
        "text": chain.to_string(),
        "shape": inner.map(|inner| nested(&inner.shape())),
        "steps": steps,
        "size": inner.map(|inner| inner.size()),
        "cosize": chain.offset_range().ok().map(|(min, max)| max - min.min(0) + 1),
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
