//! `kernel!`: a complete GEMM kernel, compiled into the program.

use layout_codegen::ir::ParamKind;
use layout_codegen::{Arch, UnknownArch};
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::{Error, Ident, LitStr, Result, Token};
use tilewright_kernels::gemm::Config;
use tilewright_kernels::gemm::{
    CompiledMap, KernelParts, MapSource, Operands, PlanError, TileSchedule, compile,
};

/// A value written as a name or as a string.
struct Value {
    text: String,
    span: Span,
}

impl Parse for Value {
    fn parse(input: ParseStream) -> Result<Self> {
        if input.peek(LitStr) {
            let literal: LitStr = input.parse()?;
            return Ok(Self {
                text: literal.value(),
                span: literal.span(),
            });
        }
        let wrong = |e: Error| Error::new(e.span(), "expected a name, or a string");
        let name: Ident = input.parse().map_err(wrong)?;
        Ok(Self {
            text: name.to_string(),
            span: name.span(),
        })
    }
}

/// `plan = "…", trans = nn, arch = sm_90`, in any order.
pub(crate) struct KernelSpec {
    plan: Value,
    trans: Value,
    arch: Value,
}

impl Parse for KernelSpec {
    fn parse(input: ParseStream) -> Result<Self> {
        let (mut plan, mut trans, mut arch) = (None, None, None);
        while !input.is_empty() {
            let key: Ident = input.parse()?;
            let slot = match key.to_string().as_str() {
                "plan" => &mut plan,
                "trans" => &mut trans,
                "arch" => &mut arch,
                _ => return Err(Error::new_spanned(key, "expected plan, trans or arch")),
            };
            if slot.is_some() {
                let message = format!("`{key}` is given twice");
                return Err(Error::new_spanned(key, message));
            }
            input.parse::<Token![=]>()?;
            *slot = Some(input.parse()?);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        let missing = |what: &str| Error::new(Span::call_site(), format!("{what} is missing"));
        Ok(Self {
            plan: plan.ok_or_else(|| missing("plan = \"…\""))?,
            trans: trans.ok_or_else(|| missing("trans = nn, nt, tn or tt"))?,
            arch: arch.ok_or_else(|| missing("arch = sm_80 or another"))?,
        })
    }
}

pub(crate) fn expand(spec: &KernelSpec) -> TokenStream {
    parts(spec).map_or_else(Error::into_compile_error, |parts| tokens(spec, &parts))
}

fn parts(spec: &KernelSpec) -> Result<KernelParts> {
    let plan = spec
        .plan
        .text
        .parse::<Config>()
        .map_err(|e| Error::new(spec.plan.span, e))?;
    let operands: Operands = spec
        .trans
        .text
        .parse()
        .map_err(|e: tilewright_kernels::gemm::ProblemError| Error::new(spec.trans.span, e))?;
    let arch: Arch = spec
        .arch
        .text
        .parse()
        .map_err(|e: UnknownArch| Error::new(spec.arch.span, e))?;
    compile(&plan.kernel(), operands, arch).map_err(|e| {
        let span = match e {
            PlanError::ArchTooOld { .. } => spec.arch.span,
            _ => spec.plan.span,
        };
        Error::new(span, e)
    })
}

fn tokens(spec: &KernelSpec, parts: &KernelParts) -> TokenStream {
    let (plan, trans, arch) = (&spec.plan.text, &spec.trans.text, &spec.arch.text);
    let KernelParts {
        ptx,
        entry,
        block,
        cluster,
        shared_bytes,
        tile,
        params,
        maps,
        limits,
        ld_multiple,
        tiles,
    } = parts;
    let tiles = match tiles {
        TileSchedule::Groups => quote!(Groups),
        TileSchedule::Columns => quote!(Columns),
        TileSchedule::Batch => quote!(Batch),
        TileSchedule::SplitK(parts) => quote!(SplitK(#parts)),
        TileSchedule::Rectangle([rows, columns]) => quote!(Rectangle([#rows, #columns])),
        TileSchedule::Linear { blocks, tiles } => {
            let [down, across] = tiles;
            quote!(Linear { blocks: #blocks, tiles: [#down, #across] })
        }
    };
    let params = params.iter().map(|(name, kind, offset)| {
        let kind = format_ident!(
            "{}",
            match kind {
                ParamKind::Pointer => "Pointer",
                ParamKind::U32 => "U32",
                ParamKind::S32 => "S32",
                ParamKind::U64 => "U64",
                ParamKind::F32 => "F32",
                ParamKind::F64 => "F64",
                ParamKind::TensorMap => "TensorMap",
            }
        );
        quote! {
            ::tilewright::kernels::gemm::CompiledParam {
                name: #name,
                kind: ::tilewright::codegen::ir::ParamKind::#kind,
                offset: #offset,
            }
        }
    });
    let maps = maps.iter().map(|(name, map)| {
        let map = tensor_map(map);
        quote!((#name, #map))
    });
    quote! {
        ::tilewright::kernels::gemm::CompiledKernel {
            plan: #plan,
            trans: #trans,
            arch: #arch,
            ptx: #ptx,
            entry: #entry,
            block: [#(#block),*],
            cluster: [#(#cluster),*],
            shared_bytes: #shared_bytes,
            tile: [#(#tile),*],
            params: &[#(#params),*],
            maps: &[#(#maps),*],
            limits: [#(#limits),*],
            ld_multiple: #ld_multiple,
            tiles: ::tilewright::kernels::gemm::TileSchedule::#tiles,
        }
    }
}

/// A tensor map's constant part.
fn tensor_map(map: &CompiledMap) -> TokenStream {
    let CompiledMap {
        of,
        element,
        rounded,
        modes: [columns, rows],
        box_sizes,
        swizzle_bytes,
    } = map;
    let of = match of {
        MapSource::A => quote!(A),
        MapSource::B => quote!(B),
        MapSource::Given => quote!(Given),
        MapSource::Workspace(offset) => quote!(Workspace(#offset)),
    };
    // The names of their variants.
    let [element, columns, rows] = [
        format_ident!("{element:?}"),
        format_ident!("{columns:?}"),
        format_ident!("{rows:?}"),
    ];
    quote! {
        ::tilewright::kernels::gemm::CompiledMap {
            of: ::tilewright::kernels::gemm::MapSource::#of,
            element: ::tilewright::codegen::ir::Element::#element,
            rounded: #rounded,
            modes: [
                ::tilewright::kernels::gemm::Mode::#columns,
                ::tilewright::kernels::gemm::Mode::#rows,
            ],
            box_sizes: [#(#box_sizes),*],
            swizzle_bytes: #swizzle_bytes,
        }
    }
}
