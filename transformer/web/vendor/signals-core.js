const t = Symbol.for("preact-signals");
function i() {
  if (e > 1) {
    e--;
    return;
  }
  let t,
    i = !1;
  !(function () {
    let t = h;
    h = void 0;
    while (void 0 !== t) {
      const i = t.S;
      if (i.v === t.v) for (let n = i.t; void 0 !== n; n = n.x) if (n.i === t.i) n.i = i.i;
      t = t.o;
    }
  })();
  while (void 0 !== r) {
    let n = r;
    r = void 0;
    c++;
    while (void 0 !== n) {
      const o = n.u;
      n.u = void 0;
      n.f &= -3;
      if (!(8 & n.f) && w(n))
        try {
          n.c();
        } catch (n) {
          if (!i) {
            t = n;
            i = !0;
          }
        }
      n = o;
    }
  }
  c = 0;
  e--;
  if (i) throw t;
}
function n(t) {
  if (e > 0) return t();
  d = ++u;
  e++;
  try {
    return t();
  } finally {
    i();
  }
}
let o, s, r;
function f(t) {
  const i = o,
    n = s;
  o = void 0;
  s = void 0;
  try {
    return t();
  } finally {
    o = i;
    s = n;
  }
}
let h,
  e = 0,
  c = 0,
  u = 0,
  d = 0,
  v = 0;
function l(t) {
  if (void 0 === o) return;
  let i = t.n;
  if (void 0 === i || i.t !== o) {
    i = { i: 0, S: t, p: o.s, n: void 0, t: o, e: void 0, x: void 0, r: i };
    if (void 0 !== o.s) o.s.n = i;
    o.s = i;
    t.n = i;
    if (32 & o.f) t.S(i);
    return i;
  } else if (-1 === i.i) {
    i.i = 0;
    if (void 0 !== i.n) {
      i.n.p = i.p;
      if (void 0 !== i.p) i.p.n = i.n;
      i.p = o.s;
      i.n = void 0;
      o.s.n = i;
      o.s = i;
    }
    return i;
  }
}
function y(t, i) {
  this.v = t;
  this.i = 0;
  this.n = void 0;
  this.t = void 0;
  this.l = 0;
  this.W = null == i ? void 0 : i.watched;
  this.Z = null == i ? void 0 : i.unwatched;
  this.name = null == i ? void 0 : i.name;
}
y.prototype.brand = t;
y.prototype.h = function () {
  return !0;
};
y.prototype.S = function (t) {
  const i = this.t;
  if (i !== t && void 0 === t.e) {
    t.x = i;
    this.t = t;
    if (void 0 !== i) i.e = t;
    else
      f(() => {
        var t;
        null == (t = this.W) || t.call(this);
      });
  }
};
y.prototype.U = function (t) {
  if (void 0 !== this.t) {
    const i = t.e,
      n = t.x;
    if (void 0 !== i) {
      i.x = n;
      t.e = void 0;
    }
    if (void 0 !== n) {
      n.e = i;
      t.x = void 0;
    }
    if (t === this.t) {
      this.t = n;
      if (void 0 === n)
        f(() => {
          var t;
          null == (t = this.Z) || t.call(this);
        });
    }
  }
};
y.prototype.subscribe = function (t) {
  return x(
    () => {
      const i = this.value;
      f(() => t(i));
    },
    { name: "sub" },
  );
};
y.prototype.valueOf = function () {
  return this.value;
};
y.prototype.toString = function () {
  return this.value + "";
};
y.prototype.toJSON = function () {
  return this.value;
};
y.prototype.peek = function () {
  return f(() => this.value);
};
Object.defineProperty(y.prototype, "value", {
  get() {
    const t = l(this);
    if (void 0 !== t) t.i = this.i;
    return this.v;
  },
  set(t) {
    if (t !== this.v) {
      if (c > 100) throw new Error("Cycle detected");
      !(function (t) {
        if (0 !== e && 0 === c)
          if (t.l !== d) {
            t.l = d;
            h = { S: t, v: t.v, i: t.i, o: h };
          }
      })(this);
      this.v = t;
      this.i++;
      v++;
      e++;
      try {
        for (let t = this.t; void 0 !== t; t = t.x) t.t.N();
      } finally {
        i();
      }
    }
  },
});
function a(t, i) {
  return new y(t, i);
}
function w(t) {
  for (let i = t.s; void 0 !== i; i = i.n)
    if (i.S.i !== i.i || !i.S.h() || i.S.i !== i.i) return !0;
  return !1;
}
function b(t) {
  for (let i = t.s; void 0 !== i; i = i.n) {
    const n = i.S.n;
    if (void 0 !== n) i.r = n;
    i.S.n = i;
    i.i = -1;
    if (void 0 === i.n) {
      t.s = i;
      break;
    }
  }
}
function _(t) {
  let i,
    n = t.s;
  while (void 0 !== n) {
    const t = n.p;
    if (-1 === n.i) {
      n.S.U(n);
      if (void 0 !== t) t.n = n.n;
      if (void 0 !== n.n) n.n.p = t;
    } else i = n;
    n.S.n = n.r;
    if (void 0 !== n.r) n.r = void 0;
    n = t;
  }
  t.s = i;
}
function j(t, i) {
  y.call(this, void 0, i);
  this.x = t;
  this.s = void 0;
  this.g = v - 1;
  this.f = 4;
}
j.prototype = new y();
j.prototype.h = function () {
  this.f &= -3;
  if (1 & this.f) return !1;
  if (32 == (36 & this.f)) return !0;
  this.f &= -5;
  if (this.g === v) return !0;
  this.g = v;
  this.f |= 1;
  if (this.i > 0 && !w(this)) {
    this.f &= -2;
    return !0;
  }
  const t = o;
  try {
    b(this);
    o = this;
    const t = this.x();
    if (16 & this.f || this.v !== t || 0 === this.i) {
      this.v = t;
      this.f &= -17;
      this.i++;
    }
  } catch (t) {
    this.v = t;
    this.f |= 16;
    this.i++;
  }
  o = t;
  _(this);
  this.f &= -2;
  return !0;
};
j.prototype.S = function (t) {
  if (void 0 === this.t) {
    this.f |= 36;
    for (let t = this.s; void 0 !== t; t = t.n) t.S.S(t);
  }
  y.prototype.S.call(this, t);
};
j.prototype.U = function (t) {
  if (void 0 !== this.t) {
    y.prototype.U.call(this, t);
    if (void 0 === this.t) {
      this.f &= -33;
      for (let t = this.s; void 0 !== t; t = t.n) t.S.U(t);
    }
  }
};
j.prototype.N = function () {
  if (!(2 & this.f)) {
    this.f |= 6;
    for (let t = this.t; void 0 !== t; t = t.x) t.t.N();
  }
};
Object.defineProperty(j.prototype, "value", {
  get() {
    if (1 & this.f) throw new Error("Cycle detected");
    const t = l(this);
    this.h();
    if (void 0 !== t) t.i = this.i;
    if (16 & this.f) throw this.v;
    return this.v;
  },
});
function O(t, i) {
  return new j(t, i);
}
function p(t) {
  const n = t.j;
  t.j = void 0;
  if ("function" == typeof n) {
    e++;
    const s = o;
    o = void 0;
    try {
      n();
    } catch (i) {
      t.f &= -2;
      t.f |= 8;
      g(t);
      throw i;
    } finally {
      o = s;
      i();
    }
  }
}
function g(t) {
  for (let i = t.s; void 0 !== i; i = i.n) i.S.U(i);
  t.x = void 0;
  t.s = void 0;
  p(t);
}
function S(t) {
  if (o !== this) throw new Error("Out-of-order effect");
  _(this);
  o = t;
  this.f &= -2;
  try {
    if (8 & this.f) g(this);
  } finally {
    i();
  }
}
function m(t, i) {
  this.x = t;
  this.j = void 0;
  this.s = void 0;
  this.u = void 0;
  this.f = 32;
  this.name = null == i ? void 0 : i.name;
  if (s) s.push(this);
}
m.prototype.c = function () {
  const t = this.S();
  try {
    if (8 & this.f) return;
    if (void 0 === this.x) return;
    const i = this.x();
    if ("function" == typeof i) this.j = i;
  } finally {
    t();
  }
};
m.prototype.S = function () {
  if (1 & this.f) throw new Error("Cycle detected");
  this.f |= 1;
  this.f &= -9;
  p(this);
  b(this);
  e++;
  const t = o;
  o = this;
  return S.bind(this, t);
};
m.prototype.N = function () {
  if (!(2 & this.f)) {
    this.f |= 2;
    this.u = r;
    r = this;
  }
};
m.prototype.d = function () {
  this.f |= 8;
  if (!(1 & this.f)) g(this);
};
m.prototype.dispose = function () {
  this.d();
};
function x(t, i) {
  const n = new m(t, i);
  try {
    n.c();
  } catch (t) {
    n.d();
    throw t;
  }
  const o = n.d.bind(n);
  o[Symbol.dispose] = o;
  return o;
}
function E(t) {
  return function (...i) {
    return n(() => f(() => t.apply(this, i)));
  };
}
const C = (t, i) => {
  i.push(t);
  const n = "[object Object]" === Object.prototype.toString.call(t),
    o = Object.create(null);
  for (let s = t; s && s !== Object.prototype; s = n && Object.getPrototypeOf(s)) {
    const n = Object.getOwnPropertyDescriptors(s);
    for (const r in n) {
      if (o[r]) continue;
      o[r] = !0;
      const f = n[r].value;
      if ("function" == typeof f) {
        if ("constructor" !== r) t[r] = E(f);
      } else if (
        s === t &&
        "object" == typeof f &&
        null !== f &&
        !("brand" in f) &&
        i.indexOf(f) < 0
      )
        C(f, i);
    }
  }
};
function k(t) {
  return function (...i) {
    let o, r;
    const f = (function () {
      let t = s;
      s = [];
      return function () {
        let i = s;
        if (s && t) t = t.concat(s);
        s = t;
        return i;
      };
    })();
    try {
      r = t(...i);
    } catch (t) {
      const i = s;
      s = void 0;
      if (i)
        try {
          n(() => {
            for (let t = 0; t < i.length; t++)
              try {
                i[t].dispose();
              } catch (t) {}
          });
        } catch (t) {}
      throw t;
    } finally {
      o = f();
    }
    C(r, []);
    r[Symbol.dispose] = E(function () {
      if (o) for (let t = 0; t < o.length; t++) o[t].dispose();
      o = void 0;
    });
    return r;
  };
}
export {
  j as Computed,
  m as Effect,
  y as Signal,
  E as action,
  n as batch,
  O as computed,
  k as createModel,
  x as effect,
  a as signal,
  f as untracked,
}; //# sourceMappingURL=signals-core.mjs.map
