package graphbuild
import ("testing";"strings";"time")
func TestDbg(t *testing.T){
 var b strings.Builder; for i:=0;b.Len()<4<<20;i++{b.WriteString(strings.Repeat(" ",i*2)+"- a\n")}
 for name, s := range map[string]string{"list":b.String(),"links":strings.Repeat("[a](",4<<20),"quotelines":strings.Repeat(strings.Repeat(">",100)+" a\n",160000), "heads":strings.Repeat("# a\n",2<<20), "refs":strings.Repeat("[a]: b\n\n",2<<20), "emblank":strings.Repeat("*a_ [a](\n\n",1<<20)} {
 st:=time.Now(); mustMarkdown(t,s,0); t.Log(name,len(s),time.Since(st))}
}
