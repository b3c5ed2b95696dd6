//! Reads what the command answers: its JSON, and in it the text of functions.
//!
//! Texts are read with values for the names in them, so that one answer with named strides is judged for several values.

use serde_json::Value;

use crate::model::{Function, Layout, Step, Swizzle, Tree, cosize};

/// One line of the command.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// A value.
    Value(Value),
    /// A refusal: its code and message.
    Error(String, String),
    /// No answer: the process died, or ran too long.
    Dead(String),
}

/// What names stand for.
pub(crate) type Names<'a> = &'a [(&'a str, i64)];

/// The integer for a step along axis `k`.
pub(crate) fn axis(k: usize) -> i64 {
    10_007_i64.pow(k as u32 + 1)
}

impl Answer {
    pub(crate) fn of_line(line: &str) -> Answer {
        match serde_json::from_str::<Value>(line) {
            Err(error) => Answer::Dead(format!("not JSON ({error}): {line}")),
            Ok(value) => match value.get("error") {
                None => Answer::Value(value),
                Some(error) => Answer::Error(
                    error["code"].as_str().unwrap_or("").to_owned(),
                    error["message"].as_str().unwrap_or("").to_owned(),
                ),
            },
        }
    }

    pub(crate) fn shown(&self) -> String {
        match self {
            Answer::Value(value) => match &value["text"] {
                Value::String(text) => text.clone(),
                _ => value["value"].to_string(),
            },
            Answer::Error(code, message) => format!("error {code}: {message}"),
            Answer::Dead(how) => how.clone(),
        }
    }

    fn value(&self, kinds: &[&str]) -> Result<&Value, String> {
        match self {
            Answer::Value(value) if kinds.contains(&value["kind"].as_str().unwrap_or("")) => {
                Ok(value)
            }
            Answer::Value(_) => Err(format!("a {kinds:?}")),
            Answer::Error(..) | Answer::Dead(_) => Err("an answer".to_owned()),
        }
    }

    pub(crate) fn int(&self) -> Result<i64, String> {
        let value = self.value(&["int"])?;
        value["value"].as_i64().ok_or_else(|| "an integer".into())
    }

    pub(crate) fn bool(&self) -> Result<bool, String> {
        let value = self.value(&["bool"])?;
        value["value"].as_bool().ok_or_else(|| "a bool".into())
    }

    /// A tuple or an integer.
    pub(crate) fn tree(&self) -> Result<Tree, String> {
        let value = self.value(&["int", "coord"])?;
        tree(&value["value"]).ok_or_else(|| "integers".into())
    }

    /// A function, with checks that the fields agree with the text.
    pub(crate) fn function(&self, names: Names<'_>) -> Result<Function, String> {
        let kinds = ["layout", "inverse", "composed", "coord_layout", "swizzle"];
        let value = self.value(&kinds)?;
        let text = value["text"].as_str().ok_or("a text")?;
        let function = Reader::new(text, names).function()?;
        let expect = |field: &str, is: i64| match value[field].as_i64() {
            Some(said) if said != is => Err(format!("{field} {is}, not {said}")),
            _ => Ok(()),
        };
        if let Some(domain) = function.domain() {
            expect("size", domain.size())?;
            expect("cosize", cosize(&function.values()))?;
            if tree(&value["shape"]).is_some_and(|shape| shape != domain.shape) {
                return Err(format!("the field shape {}", domain.shape));
            }
        }
        Ok(function)
    }

    /// The layouts of a list; a layout is a list of one.
    pub(crate) fn functions(&self) -> Result<Vec<Function>, String> {
        match self.value(&["list"]) {
            Err(_) => Ok(vec![self.function(&[])?]),
            Ok(list) => {
                let parts = list["value"].as_array().ok_or("a list")?;
                parts
                    .iter()
                    .map(|part| Answer::Value(part.clone()).function(&[]))
                    .collect()
            }
        }
    }

    /// The images of the bits, of a matrix.
    pub(crate) fn matrix(&self) -> Result<Vec<i64>, String> {
        let value = self.value(&["matrix"])?;
        let images = value["value"].as_array().ok_or("a list")?;
        images
            .iter()
            .map(|image| image.as_i64().ok_or_else(|| "integers".into()))
            .collect()
    }
}

fn tree(value: &Value) -> Option<Tree> {
    match value {
        Value::Number(n) => n.as_i64().map(Tree::Int),
        Value::Array(parts) => parts
            .iter()
            .map(tree)
            .collect::<Option<_>>()
            .map(Tree::Tuple),
        _ => None,
    }
}

/// Descends through the text of a function.
struct Reader<'a> {
    rest: &'a str,
    names: Names<'a>,
}

impl<'a> Reader<'a> {
    fn new(rest: &'a str, names: Names<'a>) -> Reader<'a> {
        Reader { rest, names }
    }

    fn eat(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        let rest = self.rest.strip_prefix(token);
        if let Some(rest) = rest {
            self.rest = rest;
        }
        rest.is_some()
    }

    fn need(&mut self, token: &str) -> Result<(), String> {
        if self.eat(token) {
            Ok(())
        } else {
            Err(format!("a text with {token} before {:?}", self.rest))
        }
    }

    fn function(&mut self) -> Result<Function, String> {
        let mut steps = vec![self.step()?];
        while self.eat("o ") {
            steps.push(self.step()?);
        }
        if self.rest.trim().is_empty() {
            Ok(Function(steps))
        } else {
            Err(format!("a text that ends before {:?}", self.rest))
        }
    }

    fn step(&mut self) -> Result<Step, String> {
        if self.eat("Sw<") {
            let b = self.int()? as u32;
            self.need(",")?;
            let m = self.int()? as u32;
            self.need(",")?;
            let s = self.int()? as i32;
            self.need(">")?;
            let swizzle = Swizzle { b, m, s };
            return Ok(if self.eat("^-1") {
                Step::Unswizzle(swizzle)
            } else {
                Step::Swizzle(swizzle)
            });
        }
        let shape = self.tree()?;
        if self.eat(":") {
            let stride = self.tree()?;
            if !shape.congruent(&stride) {
                return Err("a stride congruent with its shape".into());
            }
            return Ok(Step::Layout(Layout::new(shape, stride)));
        }
        Ok(Step::Add(match shape {
            Tree::Int(n) => n,
            // A coordinate: one entry an axis.
            Tree::Tuple(_) => {
                let parts = shape.leaves();
                parts.iter().enumerate().map(|(k, n)| n * axis(k)).sum()
            }
        }))
    }

    fn tree(&mut self) -> Result<Tree, String> {
        if self.eat("(") {
            let mut parts = vec![self.tree()?];
            while self.eat(",") {
                parts.push(self.tree()?);
            }
            self.need(")")?;
            return Ok(Tree::Tuple(parts));
        }
        Ok(Tree::Int(self.sum()?))
    }

    fn sum(&mut self) -> Result<i64, String> {
        let mut sum = self.term()?;
        loop {
            if self.eat("+") {
                sum += self.term()?;
            } else if self.eat("-") {
                sum -= self.term()?;
            } else {
                return Ok(sum);
            }
        }
    }

    fn term(&mut self) -> Result<i64, String> {
        if self.eat("-") {
            return Ok(-self.term()?);
        }
        let mut product = self.factor()?;
        loop {
            if self.eat("*") {
                product *= self.factor()?;
            } else if self.eat("@") {
                product *= axis(self.int()? as usize);
            } else {
                return Ok(product);
            }
        }
    }

    fn factor(&mut self) -> Result<i64, String> {
        self.rest = self.rest.trim_start();
        for (name, value) in self.names {
            if self.eat(name) {
                return Ok(*value);
            }
        }
        self.int()
    }

    fn int(&mut self) -> Result<i64, String> {
        self.rest = self.rest.trim_start();
        let sign = usize::from(self.rest.starts_with('-'));
        let digits = self.rest[sign..]
            .bytes()
            .take_while(u8::is_ascii_digit)
            .count();
        let (number, rest) = self.rest.split_at(sign + digits);
        self.rest = rest;
        number
            .parse()
            .map_err(|_| format!("a number before {rest:?}"))
    }
}

/// An integer expression such as `2*ld+3`.
pub(crate) fn expression(text: &str, names: Names<'_>) -> Result<i64, String> {
    Reader::new(text, names).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read() {
        let names = [("ld", 10)];
        let read = |text| Reader::new(text, &names).function().expect(text);
        assert_eq!(read("(8,(2,2)):(2*ld+1,(1,-3))").at(1), 21);
        assert_eq!(read("Sw<2,0,2> o 4 o (2,4):(4,1)").at(3), 9 ^ 2);
        assert_eq!(read("(4,4):(4,1) o -4 o Sw<2,0,2>^-1").0.len(), 3);
        assert_eq!(read("(2,(4,4)):(4@1,(1@0,1@1))").at(2), axis(0));
        assert_eq!(read("(1,2) o (2,2):(1@0,-1@1)").at(2), axis(0) + axis(1));
    }
}
