// The source of Chk.dll beside it: hands a script to Microsoft's T-SQL parser and returns its errors as text.
// It was compiled against the ScriptDom of the package that requirements/tsql.txt pins.
using System; using System.IO; using System.Text; using System.Collections.Generic; using System.Runtime.InteropServices;
using Microsoft.SqlServer.TransactSql.ScriptDom;
public static class Chk {
  public static IntPtr Check(IntPtr p) {
    string s = Marshal.PtrToStringUni(p);
    IList<ParseError> errs; var sb = new StringBuilder();
    try { new TSql150Parser(true).Parse(new StringReader(s), out errs);
      foreach (var e in errs) sb.Append(e.Line).Append(':').Append(e.Column).Append(' ').Append(e.Number).Append(' ').Append(e.Message).Append('\n'); }
    catch (Exception x) { sb.Append("EXC ").Append(x.ToString()); }
    return Marshal.StringToHGlobalUni(sb.ToString());
  }
}
